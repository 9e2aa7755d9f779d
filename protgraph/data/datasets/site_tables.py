"""Source folders with ``structures.tar.xz``, ``labels.tsv.gz`` (one row per residue) and ``splits.tsv``."""

from __future__ import annotations

import csv
import gzip
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from protgraph.data.datasets.source_protein import SourceFolder, SourceProtein
from protgraph.errors import DatasetError

__all__ = ["hold_out_clusters", "read_tsv", "read_site_tables"]


def read_tsv(path: str | Path) -> list[dict[str, str]]:
    """Read a table with a header and columns separated by tabs; it may be compressed with gzip."""
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def read_site_tables(
    source: SourceFolder,
    labels: Mapping[str, str | tuple[str, str]],
    *,
    split: str | Callable[[Mapping[str, str]], str] = "split",
    cluster: str = "cluster30",
) -> Iterator[SourceProtein]:
    """Yield the proteins of ``splits.tsv`` with their rows of ``labels.tsv.gz``, in the order of ``splits.tsv``.

    Parameters
    ----------
    source : SourceFolder
    labels : mapping of str to str or (str, str)
        Task → column of ``labels.tsv.gz``; an empty cell is an unknown label. With a second column, labels are unknown
        where it is not 1.
    split : str or callable
        Column of ``splits.tsv``, or a function from a row of it to the split. Proteins with "" are left out.
    cluster : str
        Column of ``splits.tsv``.

    Raises
    ------
    DatasetError
        A table or a column is missing, or a protein has no rows.
    """
    rows = _columns_by_file(source.path("labels.tsv.gz"))
    structures = source.unpacked("structures.tar.xz")
    for entry in read_tsv(source.path("splits.tsv")):
        own_split = split(entry) if callable(split) else _cell(entry, split, "splits.tsv")
        if not own_split:
            continue
        own = rows.get(entry["file"])
        if own is None:
            raise DatasetError(f"{source.folder / 'labels.tsv.gz'} has no row of {entry['file']!r}.")
        values = {task: _label_column(own, names) for task, names in labels.items()}
        keys = np.array(own["chain"]), np.array(own["res_id"], np.int64), np.array(own["ins_code"])
        chains = tuple(dict.fromkeys(own["chain"]))
        group = _cell(entry, cluster, "splits.tsv")
        yield SourceProtein(
            Path(entry["file"]).stem, structures / entry["file"], own_split, chains, group, keys, values
        )


def hold_out_clusters(clusters: Sequence[str], fraction: float) -> np.ndarray:
    """Return ``(P,)`` bool, the proteins of the clusters held out of P proteins.

    Clusters are taken in the order of the SHA-256 of their names until at least ``fraction`` of the proteins is held
    out, so that the choice depends on the names alone.

    Examples
    --------
    >>> hold_out_clusters(["a", "a", "b", "c"], 0.25).tolist()
    [False, False, False, True]
    """
    names, inverse, counts = np.unique(np.asarray(clusters, str), return_inverse=True, return_counts=True)
    order = sorted(range(len(names)), key=lambda i: hashlib.sha256(str(names[i]).encode()).hexdigest())
    total, held = 0, np.zeros(len(names), bool)
    for i in order:
        if total >= fraction * len(clusters):
            break
        held[i], total = True, total + counts[i]
    return held[inverse]


def _columns_by_file(path: Path) -> dict[str, dict[str, list[str]]]:
    """Return file → column → cells."""
    found: dict[str, dict[str, list[str]]] = {}
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        reader = csv.reader(file, delimiter="\t")
        header = next(reader)
        for row in reader:
            columns = found.setdefault(row[0], {name: [] for name in header})
            for name, cell in zip(header, row, strict=True):
                columns[name].append(cell)
    return found


def _label_column(rows: Mapping[str, list[str]], names: str | tuple[str, str]) -> np.ndarray:
    """Return ``(R,)`` labels, NaN where unknown or where the second column is not 1."""
    name, mask = (names, None) if isinstance(names, str) else names
    values = _numbers(_cell(rows, name, "labels.tsv.gz"))
    return values if mask is None else np.where(_numbers(_cell(rows, mask, "labels.tsv.gz")) == 1, values, np.nan)


def _cell(row: Mapping[str, Any], name: str, table: str) -> Any:
    if name not in row:
        raise DatasetError(f"{table} has no column {name!r}. Columns: {', '.join(row)}.")
    return row[name]


def _numbers(cells: Sequence[str]) -> np.ndarray:
    return np.array([float(cell) if cell else np.nan for cell in cells])
