"""Score the variants of a table, structure by structure, and list every row that has no score."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from protgraph_plugins.mutations.mutation import Mutation, format_variant
from protgraph_plugins.mutations.residue_index import ResidueIndex
from protgraph_plugins.mutations.scorer import MutationScorer, score_with_spread
from protgraph_plugins.mutations.table import MutationRow, MutationTable

from protgraph.errors import LabelError, MutationError, OptionError, ProtgraphError, list_first
from protgraph.featurize import Failure, model_notes, reader_notes
from protgraph.structure import ReadOptions, Residues
from protgraph.structure.io import open_source, read_residues
from protgraph.wording import count_noun

__all__ = ["ScoredVariants", "StructureFolder", "chain_copies", "mutate_copies", "score_variants"]

_SHARED = 0.5  # least fraction of common residue numbers of identical chains, of the shorter one


class StructureFolder:
    """Structures by the names that a table may use: path, file name, or file name without suffixes.

    Parameters
    ----------
    sources : sequence of str
        Structure files or archive entries.
    read : ReadOptions, optional
    """

    def __init__(self, sources: Sequence[str], read: ReadOptions | None = None) -> None:
        if not sources:
            raise OptionError("no structure files given.")
        self.sources, self.read = tuple(sources), read or ReadOptions()
        self._named: dict[str, list[str]] = {}
        for source in self.sources:
            for name in dict.fromkeys((source, os.path.basename(source), _stem(source))):
                self._named.setdefault(name.lower(), []).append(source)
        self._residues: dict[str, Residues | ProtgraphError] = {}

    def source(self, name: str) -> str:
        """Return the source of a name; of "", the only one.

        Raises
        ------
        LabelError
            No structure has this name, or several have.
        """
        candidates = self._named.get(name.lower(), []) if name else list(self.sources)
        exact = [source for source in candidates if name in (source, os.path.basename(source))]
        if len(exact) == 1:
            return exact[0]
        if len(candidates) == 1:
            return candidates[0]
        if not name:
            raise LabelError(
                f"the row names none of {len(candidates)} structures. Add a column 'file' with their names."
            )
        listed = list_first(candidates or self.sources, 3)
        raise LabelError(f"{len(candidates) or 'no'} structures for {name!r}: {listed}. Give the file name.")

    def residues(self, source: str) -> Residues:
        """Return the residues of a source, read once.

        Raises
        ------
        ProtgraphError
            The file cannot be read.
        """
        if source not in self._residues:
            try:
                self._residues[source] = read_residues(open_source(source), self.read)
            except ProtgraphError as e:
                self._residues[source] = e
        residues = self._residues[source]
        if isinstance(residues, ProtgraphError):
            raise residues
        return residues

    def only_chain(self, name: str) -> str | None:
        """Return the chain of a structure with one chain, else None."""
        try:
            names = self.residues(self.source(name)).chain_names
        except ProtgraphError:  # reported for each row of the structure
            return None
        return names[0] if len(names) == 1 else None


def _stem(source: str) -> str:
    name = Path(source).name
    return name.removesuffix(".gz").rpartition(".")[0] or name


# --- identical chains ----------------------------------------------------------------------------------------------


def chain_copies(residues: Residues) -> dict[str, tuple[str, ...]]:
    """Return the identical chains of each chain, itself first.

    Two chains are copies if the residues with the same number and insertion code in both have the same types, and at
    least half of the residues of the shorter one are among them: each may lack residues.

    Examples
    --------
    ``{"A": ("A", "B"), "B": ("B", "A"), "C": ("C",)}`` for a homodimer with a third chain.
    """
    names = residues.chain_names
    types: dict[str, dict[tuple[int, str], str]] = {name: {} for name in names}
    columns = (residues.chain.tolist(), residues.res_id.tolist(), residues.ins_code.tolist(), residues.sequence)
    for chain, number, code, letter in zip(*columns, strict=True):
        types[chain][number, code] = letter
    copies = {}
    for name in names:
        others = [other for other in names if other != name and _is_copy(types[name], types[other])]
        copies[name] = (name, *others)
    return copies


def _is_copy(types_a: Mapping[tuple[int, str], str], types_b: Mapping[tuple[int, str], str]) -> bool:
    shared = types_a.keys() & types_b.keys()
    if len(shared) < _SHARED * min(len(types_a), len(types_b)):
        return False
    return all(types_a[key] == types_b[key] for key in shared)


def mutate_copies(
    residues: Residues, variant: Sequence[Mutation], *, copies: Mapping[str, tuple[str, ...]] | None = None
) -> tuple[tuple[Mutation, ...], tuple[str, ...]]:
    """Return a variant with its mutations in all copies of their chains, and the ids of residues that copies lack.

    ``copies`` is the result of :func:`chain_copies`, if there are several variants.

    A copy with an explicit mutation of the same residue keeps it.
    """
    copies = chain_copies(residues) if copies is None else copies
    present = set(residues.ids)
    mutated = {m.residue for m in variant}
    mutations, absent = list(variant), []
    for m in variant:
        for name in copies.get(m.chain, ())[1:]:
            copied = replace(m, chain=name)
            if copied.residue not in present:
                absent.append(copied.residue)
            elif copied.residue not in mutated:
                mutated.add(copied.residue)
                mutations.append(copied)
    return tuple(mutations), tuple(absent)


# --- scores of a table ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ScoredVariants:
    """Rows of a table with scores.

    Parameters
    ----------
    rows : tuple of (MutationRow, str, float)
        Row, with the mutations that were made, its source and its score, in the order of the table.
    failures : tuple of Failure
        Every other row.
    notes : tuple of str
        Remarks for the user.
    spread : tuple of float
        Standard deviation of the members of the scorer for each row; NaN for one model.
    """

    rows: tuple[tuple[MutationRow, str, float], ...]
    failures: tuple[Failure, ...]
    notes: tuple[str, ...]
    spread: tuple[float, ...] = ()


def score_variants(
    scorer: MutationScorer, structures: StructureFolder, table: MutationTable, *, symmetric: bool = False
) -> ScoredVariants:
    """Score the variants of a table.

    Parameters
    ----------
    scorer : MutationScorer
    structures : StructureFolder
    table : MutationTable
    symmetric : bool
        Make each mutation in all identical chains.

    Notes
    -----
    A row whose structure is missing or cannot be read, whose mutations do not fit it, or for which the scorer has no
    value is in ``failures``.
    """
    by_source, without_source = _rows_by_source(structures, table)
    failures, notes = [*table.failures, *without_source], []
    scored: dict[int, tuple[MutationRow, str, float]] = {}
    spread_of: dict[int, float] = {}
    for source, numbers in by_source.items():
        rows = [table.rows[number] for number in numbers]
        try:
            residues = structures.residues(source)
            made = _make_variants(scorer, residues, rows, symmetric=symmetric)
            scores = score_with_spread(scorer, residues, [row.variant for row in made.rows.values()])
        except ProtgraphError as e:
            failures += [_failure(table, row, e) for row in rows]
            continue
        report = {source: residues.report}
        notes += (*model_notes(report), *reader_notes(report), *made.notes)
        errors = dict(made.errors)
        for k, value, deviation in zip(made.rows, scores.values, scores.spread_or_nan, strict=True):
            if np.isnan(value):
                errors[k] = _no_value(scorer, made.rows[k])
            else:
                scored[numbers[k]] = made.rows[k], source, float(value)
                spread_of[numbers[k]] = float(deviation)
        failures += [_failure(table, rows[k], e) for k, e in sorted(errors.items())]
    order = sorted(scored)
    return ScoredVariants(
        tuple(scored[number] for number in order),
        tuple(failures),
        tuple(notes),
        tuple(spread_of[number] for number in order),
    )


def _rows_by_source(structures: StructureFolder, table: MutationTable) -> tuple[dict[str, list[int]], list[Failure]]:
    """Return the numbers of the rows of each structure, and the failures of rows without one."""
    by_source: dict[str, list[int]] = {}
    failures = []
    for number, row in enumerate(table.rows):
        try:
            by_source.setdefault(structures.source(row.file), []).append(number)
        except LabelError as e:
            failures.append(_failure(table, row, e))
    return by_source, failures


@dataclass(frozen=True)
class _MadeVariants:
    """Rows of one structure by number, with the mutations that are made; errors of the others; notes."""

    rows: dict[int, MutationRow]
    errors: dict[int, ProtgraphError]
    notes: list[str]


def _make_variants(
    scorer: MutationScorer, residues: Residues, rows: Sequence[MutationRow], *, symmetric: bool
) -> _MadeVariants:
    """Check rows against their structure and the scorer; with ``symmetric``, mutate all copies of a chain."""
    index, copies = ResidueIndex(residues), chain_copies(residues)
    made: dict[int, MutationRow] = {}
    errors: dict[int, ProtgraphError] = {}
    lacking: dict[str, None] = {}
    misnumbered = index.numbering_errors(row.variant for row in rows)
    check_variant = getattr(scorer, "check_variant", None)
    for number, row in enumerate(rows):
        wrong_chains = [m.chain for m in row.variant if m.chain in misnumbered]
        if wrong_chains:
            errors[number] = misnumbered[wrong_chains[0]]
            continue
        variant: tuple[Mutation, ...] = row.variant
        absent: tuple[str, ...] = ()
        try:
            index.rows(variant)
            if symmetric:
                variant, absent = mutate_copies(residues, variant, copies=copies)
                index.rows(variant)
            if check_variant is not None:
                check_variant(residues, variant)
        except ProtgraphError as e:
            errors[number] = e
            continue
        lacking |= dict.fromkeys(absent)
        made[number] = replace(row, variant=variant)
    notes = [] if symmetric else _copies_left(residues.name, copies, made)
    if lacking:
        notes.append(
            f"{residues.name}: {count_noun(len(lacking), 'residue')} of identical chains not resolved, and not "
            f"mutated: {list_first(list(lacking), 6)}."
        )
    return _MadeVariants(made, errors, notes)


def _copies_left(name: str, copies: Mapping[str, tuple[str, ...]], rows: Mapping[int, MutationRow]) -> list[str]:
    """Return notes on mutated chains with identical chains that some variant does not mutate."""
    left_out: dict[str, bool] = {}  # of each mutated chain: whether a variant leaves out one of its copies
    for row in rows.values():
        mutated = {m.chain for m in row.variant}
        for m in row.variant:
            is_incomplete = not mutated.issuperset(copies[m.chain])
            left_out[m.chain] = left_out.get(m.chain, False) or is_incomplete
    notes = []
    for chain, is_incomplete in left_out.items():
        if is_incomplete:
            names = ", ".join(map(repr, copies[chain][1:]))
            notes.append(
                f"{name}: chain {chain!r} is identical to {names}; only the given mutations are made. "
                "--symmetric makes them in all copies."
            )
    return notes


def _failure(table: MutationTable, row: MutationRow, error: ProtgraphError) -> Failure:
    return table.failure(row.row, f"{row.file} {format_variant(row.variant)}".strip(), error)


def _no_value(scorer: MutationScorer, row: MutationRow) -> MutationError:
    text = format_variant(row.variant)
    return MutationError(
        f"no value: {text}. {scorer.name} has none at these residues, e.g. without a complete backbone (N, CA, C, O).",
        mutation=text,
        kind="no_value",
    )
