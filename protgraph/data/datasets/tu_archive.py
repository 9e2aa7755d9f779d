"""Read the archives of TUDataset: graphs as numbered lines of text files.

Not ``torch_geometric.datasets.TUDataset``: it downloads when it is created, and its files are pickled (PyG 2.8,
2026-11-23). Tests compare with its parser.

References
----------
Morris et al. 2020, TUDataset, arXiv:2007.08663.
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from protgraph.errors import DatasetError

__all__ = ["GraphTable", "read_tu_archive"]


@dataclass(frozen=True, eq=False)
class GraphTable:
    """G graphs with N nodes and E edges together, one after another.

    Parameters
    ----------
    nodes, edges : ndarray
        ``(G,)`` int64, numbers of nodes and edges of each graph.
    edge_index : ndarray
        ``(2, E)`` int64, source and target within the graph, sorted by target, then source; none is there twice.
    attributes : ndarray
        ``(N, C)`` float32.
    labels : ndarray
        ``(G,)`` int64, classes from 0.
    """

    nodes: np.ndarray
    edges: np.ndarray
    edge_index: np.ndarray
    attributes: np.ndarray
    labels: np.ndarray


def read_tu_archive(path: Path, *, use_attributes: bool) -> GraphTable:
    """Read ``NAME_A.txt``, ``_graph_indicator``, ``_graph_labels``, ``_node_labels`` and ``_node_attributes``.

    Parameters
    ----------
    path : Path
        Archive, .zip.
    use_attributes : bool
        Append the node attributes to the one-hot node labels.

    Raises
    ------
    DatasetError
        The archive is damaged, or lacks a file.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            edges = _numbers(archive, "A", path).astype(np.int64) - 1
            graph = _numbers(archive, "graph_indicator", path)[:, 0].astype(np.int64) - 1
            labels = _numbers(archive, "graph_labels", path)[:, 0].astype(np.int64)
            kind = _numbers(archive, "node_labels", path)[:, 0].astype(np.int64)
            columns = [np.eye(np.ptp(kind) + 1)[kind - kind.min()]]
            columns += [_numbers(archive, "node_attributes", path)] if use_attributes else []
    except (zipfile.BadZipFile, ValueError) as e:
        raise DatasetError(f"{path}: the archive cannot be read: {e}. Copy or download it again.") from e
    nodes = np.bincount(graph, minlength=len(labels))
    first = np.cumsum(nodes) - nodes
    edges = np.unique(edges[:, ::-1], axis=0)[:, ::-1]  # by target, then source
    owner = graph[edges[:, 1]]
    if (np.diff(graph) < 0).any() or (graph[edges[:, 0]] != owner).any():
        raise DatasetError(f"{path}: an edge joins two graphs, or nodes are not sorted by graph. Copy it again.")
    return GraphTable(
        nodes,
        np.bincount(owner, minlength=len(labels)),
        (edges - first[owner][:, None]).T,
        np.hstack(columns).astype(np.float32),
        labels - labels.min(),
    )


def _numbers(archive: zipfile.ZipFile, name: str, path: Path) -> np.ndarray:
    """Return ``(R, C)`` numbers of one file."""
    members = [member for member in archive.namelist() if member.endswith(f"_{name}.txt")]
    if not members:
        raise DatasetError(f"{path} has no file *_{name}.txt. Copy or download it again.")
    with archive.open(members[0]) as file:
        return np.loadtxt(io.TextIOWrapper(file, "utf-8"), delimiter=",", ndmin=2)
