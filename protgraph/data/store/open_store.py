"""Open a folder of protein graphs, whatever its format is: a graph store, or a folder of litdata."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from pathlib import Path

from protgraph.data.store.graph_store import GraphStore
from protgraph.data.store.litdata_store import LitdataStore
from protgraph.data.store.store_description import META, is_store_folder

__all__ = ["is_store", "open_store", "store_index"]

_INDEX, _FIRST_CHUNK = "index.json", "chunk-0-0.bin"  # of litdata
_ADDRESS = re.compile(r"(s3|gs|r2|azure|hf):/+(?=[^/])")


def is_store(path: object) -> bool:
    """Return True for a graph store, for a folder of ``protgraph export --to litdata``, and for an address of one."""
    return is_store_folder(path) or _is_litdata(path)


def open_store(path: str | os.PathLike[str]) -> GraphStore:
    """Return the graphs of a folder; each folder is opened once per process, and again if it changes.

    Parameters
    ----------
    path : str or PathLike
        Graph store, folder of :func:`~protgraph.data.store.litdata_export.export_litdata`, or address of such a
        folder that litdata reads, e.g. ``s3://bucket/folder``.

    Returns
    -------
    GraphStore
        A :class:`~protgraph.data.store.litdata_store.LitdataStore` for a folder of litdata.

    Raises
    ------
    DatasetError
        The folder is neither, or is incomplete.
    MissingExtraError
        litdata is not installed.

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
        stamp = 0  # an address, or the error is raised when it is opened
    return _open(text, stamp)


def store_index(path: str | os.PathLike[str]) -> Path:
    """Return the file that changes when a store is written again."""
    return Path(path) / (_INDEX if _is_litdata(path) else META)


@lru_cache(maxsize=16)
def _open(path: str, stamp: int) -> GraphStore:
    if _is_litdata(path):
        return LitdataStore(_ADDRESS.sub(r"\1://", path, count=1) if _ADDRESS.match(path) else path)
    return GraphStore(path)


def _is_litdata(path: object) -> bool:
    if not isinstance(path, (str, os.PathLike)):
        return False
    if _ADDRESS.match(os.fspath(path)):  # pathlib joins the slashes
        return True
    names = (_INDEX, _FIRST_CHUNK)
    return all(os.path.isfile(os.path.join(path, name)) for name in names) and not is_store_folder(path)
