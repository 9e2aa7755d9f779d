"""Splits of the examples of a folder: from its label table, or at random by sequence and cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from protgraph.data.datasets.dataset import Example
from protgraph.data.datasets.fingerprint import Fingerprint
from protgraph.data.datasets.folder_index import FolderIndex
from protgraph.data.datasets.label_strata import LabelStrata
from protgraph.data.datasets.label_table import LabelTable
from protgraph.data.datasets.split_assignment import SplitAssignment, SplitUnit, assign_random_splits, splits_from_table
from protgraph.errors import DatasetError

if TYPE_CHECKING:
    import numpy as np

__all__ = ["assign_folder_splits", "example_content", "split_units"]


def split_units(
    index: FolderIndex, fingerprints: Mapping[str, Fingerprint], strata: LabelStrata | None
) -> list[SplitUnit]:
    """Return the sequences, clusters and label counts of each example.

    Parameters
    ----------
    index : FolderIndex
    fingerprints : mapping of str to Fingerprint
        Fingerprint of each example, by its id.
    strata : LabelStrata, optional
        Strata of the table's rows.
    """
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
    """Assign each example to a split. Random splits keep all chains of a file together and balance the labels.

    Parameters
    ----------
    index : FolderIndex
    units : sequence of SplitUnit
        Result of :func:`split_units`.
    fractions : mapping of str to float
        Fractions of a random split.
    seed : int
    strata : LabelStrata, optional
        Strata of the counts of the units.

    Raises
    ------
    DatasetError
        The column ``split`` is incomplete or contradictory.
    """
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
