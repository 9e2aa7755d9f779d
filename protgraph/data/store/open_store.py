"""Open a graph store once per process."""

from __future__ import annotations

import os
from functools import lru_cache

from protgraph.data.store.graph_store import GraphStore
from protgraph.data.store.store_files import store_index

__all__ = ["open_store"]


def open_store(path: str | os.PathLike[str]) -> GraphStore:
    """Return the graphs of a folder; each folder is opened once per process, and again if it changes.

    Parameters
    ----------
    path : str or PathLike
        Folder of a graph store, or its address, e.g. ``s3://bucket/folder``, which is opened once.

    Raises
    ------
    DatasetError
        The folder is not a graph store, or is incomplete.

    Examples
    --------
    >>> import tempfile, torch
    >>> from protgraph.data.graph.protein_graph import ProteinGraph
    >>> from protgraph.data.store.store_writer import write_store
    >>> folder = tempfile.mkdtemp() + "/graphs"
    >>> _ = write_store(folder, [ProteinGraph(pos=torch.zeros(5, 3), name="1abc")])
    >>> open_store(folder).names, open_store(folder) is open_store(folder)
    (['1abc'], True)
    """
    text = os.fspath(path)
    try:
        stamp = store_index(text).stat().st_mtime_ns
    except OSError:
        stamp = 0  # the error is raised when it is opened
    return _open(text, stamp)


@lru_cache(maxsize=16)
def _open(path: str, stamp: int) -> GraphStore:
    return GraphStore(path)
