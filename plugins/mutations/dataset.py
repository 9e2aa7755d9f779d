"""Datasets of mutations: structures once, and a table of variants with one value each."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from protgraph_plugins.mutations.mutation import Mutation, parse_mutations
from protgraph_plugins.mutations.residue_index import ResidueIndex
from protgraph_plugins.published import PreparedDataset, SourceFolder, read_tsv, write_tsv

from protgraph.data.datasets import Example, ProteinLabels, SplitCount
from protgraph.errors import DatasetError, MutationError
from protgraph.structure.io import open_source, read_residues

__all__ = ["MutationDataset", "MutationLabels", "SourceVariant", "join_mutations"]

_VARIANTS, _FAILURES = "variants.parquet", "failures.tsv"


@dataclass(frozen=True, eq=False)
class MutationLabels(ProteinLabels):
    """Value of a variant of a protein.

    Parameters
    ----------
    value : ndarray or float
        As of :class:`protgraph.data.ProteinLabels`, e.g. ΔΔG, kcal/mol.
    mutations : tuple of Mutation
        All substitutions of the variant, one or more.
    """

    mutations: tuple[Mutation, ...] = ()


@dataclass(frozen=True)
class SourceVariant:
    """One variant of a source table.

    Parameters
    ----------
    row : str
        Place in the source, e.g. "s669.csv row 12".
    structure : str
        Id of the structure.
    mutations : str
        Text of :func:`protgraph_plugins.mutations.parse_mutations`, with "," between the mutations.
    split : str
    value : float
        Label; NaN if it is unknown, e.g. for rows that are kept beside a benchmark.
    columns : mapping of str to float
        Further values, e.g. predictions of published methods, in the sign of the label.
    problem : tuple of str, optional
        Kind and description of what the source lacks, e.g. a measured value; such a row is a failure.
    """

    row: str
    structure: str
    mutations: str
    split: str
    value: float
    columns: Mapping[str, float] = field(default_factory=dict)
    problem: tuple[str, str] | None = None


def join_mutations(row: Mapping[str, str]) -> str:
    """Return the text of the variant of a row with the columns chain, res_id, ins_code, wild_type and mutant.

    Each column has one value per mutation, separated by ";". The mutations are sorted by residue, so that variants
    that differ in their order only have one text.

    Raises
    ------
    DatasetError
        The columns have different numbers of values.

    Examples
    --------
    >>> join_mutations({"chain": "I;E", "res_id": "45;7", "ins_code": ";A", "wild_type": "L;G", "mutant": "P;S"})
    'E:G7[A]S,I:L45P'
    """
    columns = [row[name].split(";") for name in ("chain", "res_id", "ins_code", "wild_type", "mutant")]
    if len({len(column) for column in columns}) != 1:
        raise DatasetError(f"columns with different numbers of values: {dict(row)}. Separate values by ';'.")
    mutations = sorted(zip(*columns, strict=True), key=lambda m: (m[0], int(m[1]), m[2:]))
    return ",".join(f"{c}:{old}{n}{f'[{code}]' if code else ''}{new}" for c, n, code, old, new in mutations)


class MutationDataset(PreparedDataset):
    """Dataset of variants: one example, and one graph, is one variant.

    A subclass sets ``card_path`` and implements :meth:`convert`, which yields the structures, and :meth:`variants`. All
    tasks of the card have the same examples and labels.

    Parameters
    ----------
    folder : str, optional
        Prepared folder. Default: ``datasets/NAME-VERSION`` in the cache folder.

    Notes
    -----
    Every mutation is compared with its structure when the dataset is prepared. A variant of a residue that the
    structure does not have, or has with another type, of a structure that is missing, or without a value in the
    source, is a row of ``failures.tsv``: none is left out silently, and no number is shifted.
    """

    sign: ClassVar[int] = 1
    """1 if larger values are unfavorable, as the scores of all models; −1 if larger values are favorable (fitness)."""

    @abstractmethod
    def variants(self, source: SourceFolder) -> Iterator[SourceVariant]:
        """Yield the variants of a source folder, in the order of its tables; each (structure, mutations) once."""

    def write_tables(self, source: SourceFolder, folder: Path, structures: Mapping[str, Path]) -> Sequence[str]:
        """Write the variants that fit their structure, and a row of ``failures.tsv`` for each other one."""
        checked = _check_variants(list(self.variants(source)), structures)
        pq.write_table(_variant_table(checked.variants), folder / _VARIANTS, compression="zstd")
        header = ("row", "structure", "mutations", "split", "kind", "error")
        write_tsv(folder / _FAILURES, [header, *checked.failures])
        return _VARIANTS, _FAILURES

    @property
    def failures(self) -> list[dict[str, str]]:
        """Rows of the source without a value, or that do not fit their structure, with the error."""
        self.rows  # noqa: B018 - raises if the dataset is not prepared
        return read_tsv(self.folder / _FAILURES)

    @cached_property
    def table(self) -> pa.Table:
        """Variants: id, structure, mutations, split, value, and the further columns of the source."""
        self.rows  # noqa: B018 - raises if the dataset is not prepared
        return pq.read_table(self.folder / _VARIANTS)

    def examples(self, task: str, split: str | None = None) -> list[Example]:
        """Return the variants with a known value, of all splits or of one."""
        splits = self._task(task).counts
        if split is not None:
            splits = [name for name in splits if name == split]
        return [example for example in self._variants if example.split in splits and example.id in self._values]

    def labels(self, task: str, example: Example) -> MutationLabels:
        """Return mutations and value of a variant."""
        self._task(task)
        return MutationLabels(np.float32([self._values[example.id]]), self.mutations(example))

    def mutations(self, example: Example) -> tuple[Mutation, ...]:
        """Return the mutations of a variant."""
        return parse_mutations(self._texts[example.id], join_commas=True)

    def partners(self, structure: str) -> tuple[tuple[str, ...], ...] | None:
        """Return the chains of each side of a complex; None for datasets that are not of binding."""
        return None

    def links(self, example: Example) -> frozenset[str]:
        """Return the sequence cluster of the structure."""
        cluster = self.rows[example.path.stem]["cluster"]
        return frozenset({f"cluster {cluster}"}) if cluster else super().links(example)

    def check(self, task: str) -> dict[str, SplitCount]:
        """Count variants, the residues of their structures (each once), and labels of each split."""
        variants: dict[str, int] = {}
        structures: dict[str, set[Path]] = {}
        length: dict[Path, int] = {}
        for example in self.examples(task):
            if example.path not in length:
                length[example.path] = len(self.read(example))
            structures.setdefault(example.split, set()).add(example.path)
            variants[example.split] = variants.get(example.split, 0) + 1
        counts = {}
        for split in self.splits(task):
            residues = sum(length[path] for path in structures[split])
            counts[split] = SplitCount(variants[split], residues, variants[split])
        return counts

    @cached_property
    def _variants(self) -> list[Example]:
        files = {row["id"]: self.folder / "structures" / row["file"] for row in self.rows.values()}
        columns = (self.table[name].to_pylist() for name in ("id", "structure", "split"))
        return [Example(name, files[structure], None, split) for name, structure, split in zip(*columns, strict=True)]

    @cached_property
    def _texts(self) -> dict[str, str]:
        return dict(zip(self.table["id"].to_pylist(), self.table["mutations"].to_pylist(), strict=True))

    @cached_property
    def _values(self) -> dict[str, float]:
        pairs = zip(self.table["id"].to_pylist(), self.table["value"].to_pylist(), strict=True)
        return {name: value for name, value in pairs if value is not None}


@dataclass(frozen=True)
class _CheckedVariants:
    """Variants that fit their structure, with their text, and rows of ``failures.tsv``, in the order of the source."""

    variants: list[tuple[SourceVariant, str]]
    failures: list[tuple[str, ...]]


def _check_variants(variants: Sequence[SourceVariant], structures: Mapping[str, Path]) -> _CheckedVariants:
    """Compare variants with their structures.

    Raises
    ------
    DatasetError
        Two variants of a structure have the same mutations.
    """
    # each structure is read once, and one at a time
    texts: dict[int, str] = {}
    errors: dict[int, tuple[str, str]] = {}
    by_structure: dict[str, list[int]] = {}
    for number, variant in enumerate(variants):
        by_structure.setdefault(variant.structure, []).append(number)
    for structure, numbers in by_structure.items():
        index = _structure_index(structures.get(structure))
        for number in numbers:
            variant = variants[number]
            if variant.problem is not None:
                errors[number] = variant.problem
                continue
            try:
                texts[number] = _checked_text(variant, index)
            except MutationError as e:
                errors[number] = e.kind, " ".join(str(e).split())
    first: dict[tuple[str, str], SourceVariant] = {}
    for number, text in texts.items():
        variant = variants[number]
        earlier = first.get((variant.structure, text))
        if earlier is not None:
            raise DatasetError(
                f"{variant.row} and {earlier.row}: the same variant {text} of {variant.structure}. Give one value."
            )
        first[variant.structure, text] = variant
    failures = []
    for number in sorted(errors):
        v = variants[number]
        failures.append((v.row, v.structure, v.mutations, v.split, *errors[number]))
    return _CheckedVariants([(variants[number], texts[number]) for number in sorted(texts)], failures)


def _structure_index(path: Path | None) -> ResidueIndex | None:
    """Return the residues of a prepared structure; None without one."""
    return None if path is None else ResidueIndex(read_residues(open_source(str(path))))


def _checked_text(variant: SourceVariant, index: ResidueIndex | None) -> str:
    """Return the text of the mutations of a variant that fits its structure."""
    if index is None:
        raise MutationError(
            f"no structure file of {variant.structure}.", mutation=variant.mutations, kind="no_structure"
        )
    mutations = parse_mutations(variant.mutations, join_commas=True)
    index.rows(mutations)
    return ",".join(map(str, mutations))


def _variant_table(variants: Sequence[tuple[SourceVariant, str]]) -> pa.Table:
    """Return the table of variants; unknown numbers are null."""
    columns: dict[str, list] = {
        "id": [f"{variant.structure}:{text}" for variant, text in variants],
        "structure": [variant.structure for variant, _ in variants],
        "mutations": [text for _, text in variants],
        "split": [variant.split for variant, _ in variants],
        "row": [variant.row for variant, _ in variants],
        "value": [float(variant.value) for variant, _ in variants],
    }
    published: dict[str, None] = {}
    for variant, _ in variants:
        published |= dict.fromkeys(variant.columns)
    for name in published:
        columns[name] = [float(variant.columns.get(name, np.nan)) for variant, _ in variants]
    return pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()})
