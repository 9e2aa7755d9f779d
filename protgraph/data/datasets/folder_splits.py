"""Splits of the examples of a folder: from its label table, or at random by sequence and cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from protgraph.data.datasets.card import SplitCount
from protgraph.data.datasets.dataset import Example
from protgraph.data.datasets.fingerprint import Fingerprint
from protgraph.data.datasets.folder_index import FolderIndex
from protgraph.data.datasets.label_strata import LabelStrata
from protgraph.data.datasets.label_table import LabelTable
from protgraph.data.datasets.labels import count_example
from protgraph.data.datasets.split_assignment import SplitAssignment, SplitUnit, assign_random_splits, splits_from_table
from protgraph.data.datasets.target import Target
from protgraph.errors import DatasetError

__all__ = [
    "assign_folder_splits",
    "count_splits",
    "example_content",
    "leave_out_unlabeled",
    "order_splits",
    "split_units",
]

_FIRST = ("train", "val", "test")  # splits, before others


def leave_out_unlabeled(index: FolderIndex, values: np.ndarray) -> tuple[FolderIndex, list[int]]:
    """Return the index of the examples with a known label, and the places of the others.

    Examples whose split is in the table all stay: the splits are then the user's.

    Parameters
    ----------
    index : FolderIndex
    values : ndarray
        ``(T,)`` classes or ``(T, C)``, labels of the T rows of the table; −1 or NaN for unknown.
    """
    if index.table is None or "split" in index.table.keys:
        return index, []
    known = values >= 0 if values.dtype.kind == "i" else ~np.isnan(values).all(1)
    labeled = [i for i, rows in enumerate(index.rows) if known[rows].any()]
    left_out = sorted(set(range(len(index.rows))) - set(labeled))
    examples, rows = (tuple(part[i] for i in labeled) for part in (index.examples, index.rows))
    return replace(index, examples=examples, rows=rows), left_out


def split_units(
    index: FolderIndex, fingerprints: Mapping[str, Fingerprint], strata: LabelStrata | None
) -> list[SplitUnit]:
    """Return the sequences, clusters and label counts of each example."""
    keys, units = {} if index.table is None else index.table.keys, []
    for example, rows in zip(index.examples, index.rows, strict=True):
        content = example_content(example, fingerprints[example.id])
        clusters = frozenset(keys["cluster"][rows].tolist() if "cluster" in keys else ()) - {""}
        counts = () if strata is None else strata.of(rows)
        units.append(SplitUnit(example.id, content.known, clusters, bool(content.sequences), counts))
    return units


def assign_folder_splits(
    index: FolderIndex,
    units: Sequence[SplitUnit],
    *,
    fractions: Mapping[str, float],
    seed: int,
    strata: LabelStrata | None,
) -> SplitAssignment:
    """Assign each example to a split. Random splits keep all chains of a file together and balance the labels."""
    keys = {} if index.table is None else index.table.keys
    if index.table is not None and "split" in keys:
        return splits_from_table(_splits_in_table(index.table, index.rows), units, index.table.where)
    sources = [(example.path, example.record) for example in index.examples]
    merged: dict[tuple[Path, str | None], SplitUnit] = {}
    for source, unit in zip(sources, units, strict=True):
        merged[source] = unit.merge(merged[source]) if source in merged else unit
    assignment = assign_random_splits(list(merged.values()), fractions=fractions, seed=seed, strata=strata)
    split = dict(zip(merged, assignment.splits, strict=True))
    return replace(assignment, splits=tuple(split[source] for source in sources))


def example_content(example: Example, fingerprint: Fingerprint) -> Fingerprint:
    """Return the part of the fingerprint of a file that belongs to the chains or the record of an example."""
    return fingerprint.of(example.chains if fingerprint.records is None else (example.record or "",))


def _splits_in_table(table: LabelTable, rows: Sequence[np.ndarray]) -> list[str]:
    """Return the split of each protein."""
    column = table.keys["split"]
    splits = [sorted(set(column[own].tolist())) for own in rows]
    for own, names in zip(rows, splits, strict=True):
        if names == [""] or len(names) > 1:
            raise DatasetError(
                f"{table.where}: the protein of row {table.rows[own[0]]} has the splits {names}; allowed: one"
            )
    return [names[0] for names in splits]


def count_splits(
    index: FolderIndex,
    splits: Sequence[str],
    fingerprints: Mapping[str, Fingerprint],
    values: np.ndarray | None,
    target: Target | None,
) -> dict[str, SplitCount]:
    """Count proteins, residues and labels of each split without reading the files again; train, val and test first.

    Proteins that cannot be read are not counted.

    Parameters
    ----------
    index : FolderIndex
    splits : sequence of str
        Split of each example.
    fingerprints : mapping of str to Fingerprint
        Fingerprint of each example, by its id.
    values : ndarray, optional
        ``(T,)`` classes or ``(T, C)``, labels of the T rows of the table; None if the task computes them.
    target : Target, optional
    """
    counts: dict[str, SplitCount] = {}
    for example, rows, split in zip(index.examples, index.rows, splits, strict=True):
        content = example_content(example, fingerprints[example.id])
        residues, own = sum(content.lengths.values()), rows if index.is_per_residue else rows[:1]
        is_readable = bool(content.sequences)
        count = SplitCount(1, residues)
        if values is not None and target is not None:
            count = count_example(values[own if is_readable else own[:0]], target, residues)
        count = count if is_readable else replace(count, proteins=0)
        counts[split] = counts[split] + count if split in counts else count
    return {name: counts[name] for name in order_splits(counts)}


def order_splits(names: Collection[str]) -> list[str]:
    """Return train, val and test first, and other splits in sorted order.

    Examples
    --------
    >>> order_splits({"far", "test", "train"})
    ['train', 'test', 'far']
    """
    return [name for name in _FIRST if name in names] + sorted(set(names) - set(_FIRST))
