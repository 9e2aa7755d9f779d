"""Base class of prepared datasets of mutations: structures once, and a table of variants with one value each."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from protgraph.data.datasets.card import SplitCount
from protgraph.data.datasets.dataset import Example, read_example
from protgraph.data.datasets.mutation_labels import MutationLabels
from protgraph.data.datasets.prepared_dataset import STRUCTURES, PreparedDataset
from protgraph.data.datasets.prepared_folder import MANIFEST, write_table
from protgraph.data.datasets.site_tables import read_tsv
from protgraph.data.datasets.source_protein import SourceFolder
from protgraph.errors import DatasetError, MutationError
from protgraph.file_io import file_sha256
from protgraph.structure.mutation import Mutation, ResidueIndex, parse_mutations

__all__ = ["FAILURES", "VARIANTS", "MutationDataset", "SourceVariant", "join_mutations"]

VARIANTS, FAILURES = "variants.parquet", "failures.tsv"


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
        Text of :func:`protgraph.structure.mutation.parse_mutations`, with "," between the mutations.
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
    parts = sorted(zip(*columns, strict=True), key=lambda part: (part[0], int(part[1]), part[2:]))
    return ",".join(f"{c}:{old}{n}{f'[{code}]' if code else ''}{new}" for c, n, code, old, new in parts)


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

    def write(self, source: SourceFolder, part: Path, progress: Callable[[int], None] | None = None) -> int:
        """Write structures, variants, failures and manifest."""
        reused = super().write(source, part, progress)
        files = {row["id"]: part / STRUCTURES / row["file"] for row in read_tsv(part / "examples.tsv")}
        kept, failures = _checked(list(self.variants(source)), files)
        pq.write_table(_table(kept), part / VARIANTS, compression="zstd")
        header = ("row", "structure", "mutations", "split", "kind", "error")
        write_table(part / FAILURES, [header, *failures])
        with open(part / MANIFEST, "a", encoding="utf-8") as manifest:
            manifest.writelines(f"{name}\t{file_sha256(part / name)}\t\n" for name in (VARIANTS, FAILURES))
        return reused

    @property
    def failures(self) -> list[dict[str, str]]:
        """Rows of the source without a value, or that do not fit their structure, with the error."""
        return read_tsv(self.folder / FAILURES)

    @cached_property
    def table(self) -> pa.Table:
        """Variants: id, structure, mutations, split, value, and the further columns of the source."""
        self.rows  # noqa: B018 - raises if the dataset is not prepared
        return pq.read_table(self.folder / VARIANTS)

    def examples(self, task: str, split: str | None = None) -> list[Example]:
        """Return the variants with a known value, of all splits or of one."""
        counts = self._task(task).counts
        known = [example for example in self._variants if example.split in counts and example.id in self._values]
        return [example for example in known if split in (None, example.split)]

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
        """Count variants, the residues of their structures (each once), and labels of each split.

        Raises
        ------
        MutationError
            A mutation does not fit its structure.
        """
        sizes: dict[tuple[str, Path], int] = {}
        variants: dict[str, int] = {}
        index: dict[Path, ResidueIndex] = {}
        for example in self.examples(task):
            if example.path not in index:
                index = {example.path: ResidueIndex(read_example(example, self.read_options))}
            index[example.path].rows(self.mutations(example))
            sizes[example.split, example.path] = len(index[example.path].residues)
            variants[example.split] = variants.get(example.split, 0) + 1
        residues = {split: sum(n for (own, _), n in sizes.items() if own == split) for split in variants}
        return {split: SplitCount(variants[split], residues[split], variants[split]) for split in self.splits(task)}

    @cached_property
    def _variants(self) -> list[Example]:
        files = {row["id"]: self.folder / STRUCTURES / row["file"] for row in self.rows.values()}
        columns = (self.table[name].to_pylist() for name in ("id", "structure", "split"))
        return [Example(name, files[structure], None, split) for name, structure, split in zip(*columns, strict=True)]

    @cached_property
    def _texts(self) -> dict[str, str]:
        return dict(zip(self.table["id"].to_pylist(), self.table["mutations"].to_pylist(), strict=True))

    @cached_property
    def _values(self) -> dict[str, float]:
        pairs = zip(self.table["id"].to_pylist(), self.table["value"].to_pylist(), strict=True)
        return {name: value for name, value in pairs if value is not None}


def _checked(
    variants: list[SourceVariant], files: Mapping[str, Path]
) -> tuple[list[tuple[SourceVariant, str]], list[tuple[str, ...]]]:
    """Return the variants that fit their structure with their text, and a row of ``failures.tsv`` per other."""
    kept: dict[int, tuple[SourceVariant, str]] = {}
    failures: dict[int, tuple[str, ...]] = {}
    by_structure: dict[str, list[int]] = {}
    for number, variant in enumerate(variants):
        by_structure.setdefault(variant.structure, []).append(number)
    seen: dict[tuple[str, str], SourceVariant] = {}
    for structure, numbers in by_structure.items():
        index = None
        if structure in files:
            index = ResidueIndex(
                read_example(Example(structure, files[structure], None, ""), MutationDataset.read_options)
            )
        for number in numbers:
            one = variants[number]
            if one.problem is not None:
                failures[number] = (one.row, structure, one.mutations, one.split, *one.problem)
                continue
            try:
                if index is None:
                    raise MutationError(
                        f"no structure file of {structure}.", mutation=one.mutations, kind="no_structure"
                    )
                mutations = parse_mutations(one.mutations, join_commas=True)
                index.rows(mutations)
            except MutationError as e:
                message = " ".join(str(e).split())
                failures[number] = (one.row, structure, one.mutations, one.split, e.kind, message)
                continue
            text = ",".join(map(str, mutations))
            if (structure, text) in seen:
                first = seen[structure, text]
                raise DatasetError(
                    f"{one.row} and {first.row}: the same variant {text} of {structure}. Give one value."
                )
            seen[structure, text] = one
            kept[number] = (one, text)
    return [kept[n] for n in sorted(kept)], [failures[n] for n in sorted(failures)]


def _table(variants: list[tuple[SourceVariant, str]]) -> pa.Table:
    """Return the table of variants; unknown numbers are null."""
    columns: dict[str, list] = {
        "id": [f"{one.structure}:{text}" for one, text in variants],
        "structure": [one.structure for one, _ in variants],
        "mutations": [text for _, text in variants],
        "split": [one.split for one, _ in variants],
        "row": [one.row for one, _ in variants],
        "value": [float(one.value) for one, _ in variants],
    }
    for name in dict.fromkeys(name for one, _ in variants for name in one.columns):
        columns[name] = [float(one.columns.get(name, np.nan)) for one, _ in variants]
    return pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()})
