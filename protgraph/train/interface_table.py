"""Predictions per interface: one row per pair of chains, pooled over the residues or pairs between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from protgraph.data.datasets.target import Target
from protgraph.errors import OptionError
from protgraph.structure.compare.interfaces import INTERFACE_CUTOFF, chain_interfaces
from protgraph.structure.io.sources import read_residues
from protgraph.structure.residues.residues import Residues
from protgraph.train.prediction_table import Predictions
from protgraph.train.result_table import ResultTable, Row

__all__ = ["interface_table", "pooled_columns"]

_KEYS = ("chain_1", "chain_2")


def pooled_columns(target: Target, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the predicted columns that are pooled: probabilities and values, not classes."""
    if target.level not in ("node", "pair") or target.is_geometric:
        raise OptionError(
            f"no prediction per interface: the model predicts {target.name!r}, {target.kind} per {target.level}. "
            "Allowed: probabilities and values per residue or per pair of residues."
        )
    return tuple(name for name in columns if not name.startswith("predicted"))


def interface_table(predictions: Predictions, *, cutoff: float = INTERFACE_CUTOFF) -> ResultTable:
    """Return one row per pair of chains with the predictions pooled over their interface.

    Parameters
    ----------
    predictions : Predictions
        Of structure files.
    cutoff : float
        Of predictions per residue: largest distance of heavy atoms of residues in contact, Å.

    Returns
    -------
    ResultTable
        Per residue: ``file``, ``chain_1``, ``chain_2``, the numbers of residues of both in contact and of pairs in
        contact in the structure, and the mean of each predicted column over the residues of chain 1, of chain 2 and of
        both. Chains without contact have no row.
        Per pair: ``file``, ``chain_1``, ``chain_2``, the number of pairs of residues, and the sum and the maximum of
        each column over all pairs of the two chains. The sum of probabilities is the expected number of contacts. The
        positions of the chains in the file are not used.

    Raises
    ------
    OptionError
        See :func:`pooled_columns`.
    StructureFileError
        A file cannot be read any more.
    """
    identity = predictions.columns.index("res_name" if predictions.target.level == "node" else "res_name_2") + 1
    names = pooled_columns(predictions.target, predictions.columns[identity:])
    places = [predictions.columns.index(name) for name in names]
    groups: dict[str, list[Row]] = {}
    for row in predictions.rows:
        groups.setdefault(str(row[0]), []).append(row)
    if predictions.target.level == "pair":
        columns = ("file", *_KEYS, "pairs", *(f"{kind}_{name}" for name in names for kind in ("sum", "max")))
        rows = [row for file, own in groups.items() for row in _of_pairs(file, own, predictions.columns, places)]
        return ResultTable(columns, rows)
    counts = ("residues_1", "residues_2", "contacts")
    columns = ("file", *_KEYS, *counts, *(f"{name}{side}" for name in names for side in ("_1", "_2", "")))
    rows = []
    for file, own in groups.items():
        residues = read_residues(file, predictions.read)
        rows += _of_residues(file, residues, own, places, cutoff)
    return ResultTable(columns, rows)


def _of_residues(
    file: str, residues: Residues, rows: Sequence[Row], places: Sequence[int], cutoff: float
) -> Iterator[Row]:
    """Yield the rows of one file from predictions per residue; residues without a prediction are not pooled."""
    known = {tuple(row[1:4]): [row[i] for i in places] for row in rows}
    keys = zip(residues.chain.tolist(), residues.res_id.tolist(), residues.ins_code.tolist(), strict=True)
    missing = [np.nan] * len(places)
    values = np.array([known.get(key, missing) for key in keys], np.float64)  # (N, V)
    for interface in chain_interfaces(residues, cutoff):
        first, second = interface.residues
        means = [_mean(values[part]) for part in (first, second, np.concatenate([first, second]))]
        pooled = np.stack(means, axis=1).flatten().tolist()  # of each column: chain 1, chain 2, both
        yield (file, *interface.chains, len(first), len(second), interface.pairs.shape[1], *pooled)


def _mean(values: np.ndarray) -> np.ndarray:
    """Return the mean of known rows, ``(R, V)`` to ``(V,)``; NaN without any."""
    known = values[~np.isnan(values).any(axis=1)]
    return known.mean(axis=0) if len(known) else np.full(values.shape[1], np.nan)


def _of_pairs(file: str, rows: Sequence[Row], columns: Sequence[str], places: Sequence[int]) -> Iterator[Row]:
    """Yield the rows of one file from predictions per pair of residues."""
    sides = columns.index("chain_1"), columns.index("chain_2")
    groups: dict[tuple[str, str], list[list[float]]] = {}
    for row in rows:
        first, second = (str(row[side]) for side in sides)
        if first != second:
            groups.setdefault((first, second), []).append([float(row[i]) for i in places])
    for chains, values in groups.items():
        table = np.array(values)  # (P, V)
        pooled = np.stack([table.sum(axis=0), table.max(axis=0)], axis=1).flatten().tolist()
        yield (file, *chains, len(values), *pooled)
