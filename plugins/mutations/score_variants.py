"""Score the variants of a table, structure by structure, and list every row that has no score."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from protgraph.data.datasets.mutation_table import MutationRow, MutationTable
from protgraph.design.mutation.chain_copies import chain_copies, mutate_copies
from protgraph.errors import LabelError, MutationError, OptionError, ProtgraphError, list_first
from protgraph.failure import Failure
from protgraph.featurize.result import model_notes, reader_notes
from protgraph.structure import ReadOptions, Residues
from protgraph.structure.io import open_source
from protgraph.structure.io.sources import read_residues
from protgraph.structure.mutation import MutationScorer, ResidueIndex, format_variant
from protgraph.wording import count_noun

__all__ = ["ScoredVariants", "StructureFolder", "score_variants"]


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
        found = self._named.get(name.lower(), []) if name else list(self.sources)
        exact = [source for source in found if name in (source, os.path.basename(source))]
        found = exact if len(exact) == 1 else found
        if len(found) == 1:
            return found[0]
        if not name:
            raise LabelError(f"the row names none of {len(found)} structures. Add a column 'file' with their names.")
        given = list_first(found or self.sources, 3)
        raise LabelError(f"{len(found) or 'no'} structures for {name!r}: {given}. Give the file name.")

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
        found = self._residues[source]
        if isinstance(found, ProtgraphError):
            raise found
        return found

    def only_chain(self, name: str) -> str | None:
        """Return the chain of a structure with one chain, else None."""
        try:
            names = self.residues(self.source(name)).chain_names
        except ProtgraphError:  # reported for each row of the structure
            return None
        return names[0] if len(names) == 1 else None


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
    """

    rows: tuple[tuple[MutationRow, str, float], ...]
    failures: tuple[Failure, ...]
    notes: tuple[str, ...]


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
    failures, notes = list(table.failures), []
    by_source: dict[str, list[int]] = {}
    for number, row in enumerate(table.rows):
        try:
            by_source.setdefault(structures.source(row.file), []).append(number)
        except LabelError as e:
            failures.append(_failed(table, row, e))
    scored: dict[int, tuple[MutationRow, str, float]] = {}
    for source, numbers in by_source.items():
        rows = [table.rows[number] for number in numbers]
        try:
            residues = structures.residues(source)
            made, problems, remarks = _variants(scorer, residues, rows, symmetric=symmetric)
            values = scorer.score(residues, [row.variant for row in made.values()])
        except ProtgraphError as e:
            failures += [_failed(table, row, e) for row in rows]
            continue
        report = {source: residues.report}
        notes += (*model_notes(report), *reader_notes(report), *remarks)
        problems |= {k: _no_value(scorer, made[k]) for k, v in zip(made, values, strict=True) if np.isnan(v)}
        failures += [_failed(table, rows[k], e) for k, e in sorted(problems.items())]
        good = {k: float(v) for k, v in zip(made, values, strict=True) if k not in problems}
        scored |= {numbers[k]: (made[k], source, value) for k, value in good.items()}
    return ScoredVariants(tuple(scored[number] for number in sorted(scored)), tuple(failures), tuple(notes))


def _variants(
    scorer: MutationScorer, residues: Residues, rows: Sequence[MutationRow], *, symmetric: bool
) -> tuple[dict[int, MutationRow], dict[int, ProtgraphError], list[str]]:
    """Return the rows that fit structure and scorer by number, with all copies mutated if wanted; errors; and notes."""
    index, made, problems, lacking = ResidueIndex(residues), {}, {}, []
    copies = chain_copies(residues)
    numbering = index.numbering_errors(row.variant for row in rows)
    for number, row in enumerate(rows):
        misnumbered = [numbering[m.chain] for m in row.variant if m.chain in numbering]
        if misnumbered:
            problems[number] = misnumbered[0]
            continue
        try:
            index.rows(row.variant)
            variant, absent = mutate_copies(residues, row.variant, copies=copies) if symmetric else (row.variant, ())
            index.rows(variant)
            if check := getattr(scorer, "check_variant", None):
                check(residues, variant)
        except ProtgraphError as e:
            problems[number] = e
            continue
        lacking += absent
        made[number] = replace(row, variant=variant)
    notes = [] if symmetric else _copies_left(residues.name, copies, made)
    if lacking:
        absent = list(dict.fromkeys(lacking))
        notes.append(
            f"{residues.name}: {count_noun(len(absent), 'residue')} of identical chains not resolved, and not mutated: "
            f"{list_first(absent, 6)}."
        )
    return made, problems, notes


def _copies_left(name: str, copies: Mapping[str, tuple[str, ...]], rows: Mapping[int, MutationRow]) -> list[str]:
    """Return notes on mutated chains with identical chains that some variant does not mutate."""
    notes = []
    for chain in dict.fromkeys(m.chain for row in rows.values() for m in row.variant):
        others = set(copies[chain][1:])
        if any(not others <= {m.chain for m in row.variant} for row in rows.values() if _mutates(row, chain)):
            names = ", ".join(map(repr, copies[chain][1:]))
            notes.append(
                f"{name}: chain {chain!r} is identical to {names}; only the given mutations are made. "
                "--symmetric makes them in all copies."
            )
    return notes


def _mutates(row: MutationRow, chain: str) -> bool:
    return any(m.chain == chain for m in row.variant)


def _failed(table: MutationTable, row: MutationRow, error: ProtgraphError) -> Failure:
    return table.failure(row.row, f"{row.file} {format_variant(row.variant)}".strip(), error)


def _no_value(scorer: MutationScorer, row: MutationRow) -> MutationError:
    text = format_variant(row.variant)
    return MutationError(
        f"no value: {text}. {scorer.name} has none at these residues, e.g. without a complete backbone (N, CA, C, O).",
        mutation=text,
        kind="no_value",
    )


def _stem(source: str) -> str:
    name = Path(source).name
    return name.removesuffix(".gz").rpartition(".")[0] or name
