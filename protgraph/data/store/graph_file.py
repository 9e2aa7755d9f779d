"""One graph with its residues in one safetensors file: finished work of a run that can be resumed.

A :class:`~protgraph.data.store.graph_store.GraphStore` holds all proteins in flat arrays and is written at the end;
these files are written one by one during the run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from protgraph.data.graph.protein_graph import ProteinGraph, set_attributes
from protgraph.data.store.residue_arrays import residues_from_arrays, residues_to_arrays
from protgraph.errors import DatasetError, FieldError
from protgraph.file_io import atomic_write
from protgraph.structure.residues.residues import Residues

__all__ = ["GraphFile", "read_graph_file", "write_graph_file"]

_RESIDUES = "residues."


class GraphFile(NamedTuple):
    """Content of a graph file.

    Parameters
    ----------
    graph : ProteinGraph
    residues : Residues, optional
        None if the file was written without.
    info : dict
        Plain data of the writer.
    """

    graph: ProteinGraph
    residues: Residues | None
    info: dict[str, Any]


def write_graph_file(
    path: str | Path, graph: ProteinGraph, *, residues: Residues | None = None, info: Mapping[str, Any]
) -> None:
    """Write a graph to a safetensors file, atomically.

    Parameters
    ----------
    path : str or Path
        The file; an existing one is replaced.
    graph : ProteinGraph
        Tensors, arrays of strings, and plain data.
    residues : Residues, optional
        Kept beside the graph.
    info : mapping
        Plain data to keep beside it.

    Raises
    ------
    FieldError
        An attribute of the graph is neither an array nor plain data.
    """
    from safetensors.numpy import save_file

    arrays = {key: value.numpy() if isinstance(value, Tensor) else value for key, value in graph.items()}
    plain = {key: arrays.pop(key) for key in list(arrays) if not isinstance(arrays[key], np.ndarray)}
    described = None
    if residues is not None:
        own, described = residues_to_arrays(residues)
        arrays |= {_RESIDUES + key: value for key, value in own.items()}
    strings = {key: a.dtype.str for key, a in arrays.items() if a.dtype.kind == "U"}
    try:
        meta = {"info": dict(info), "strings": strings, "plain": plain, "residues": described}
        metadata = {key: json.dumps(value) for key, value in meta.items()}
    except (TypeError, ValueError) as e:
        raise FieldError(f"graph {graph.name!r} cannot be written: {e}. Allowed: arrays and plain data.") from e
    codes = {key: _codes(a) if key in strings else np.ascontiguousarray(a) for key, a in arrays.items()}
    with atomic_write(path) as temporary:
        save_file(codes, temporary, metadata=metadata)


def read_graph_file(path: str | Path) -> GraphFile:
    """Read the file of :func:`write_graph_file`.

    Raises
    ------
    DatasetError
        The file is missing or damaged.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            meta = {key: json.loads(text) for key, text in (file.metadata() or {}).items()}
            arrays = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 -- not a mapping
    except (OSError, SafetensorError, ValueError) as e:
        raise DatasetError(f"{path} is missing or damaged ({e}). Remove it and run again.") from e
    if meta.keys() != {"info", "strings", "plain", "residues"}:
        raise DatasetError(f"{path} is not a graph file of this version. Remove it and run again.")
    arrays |= {key: arrays[key].view(dtype).reshape(-1) for key, dtype in meta["strings"].items()}
    own = {key.removeprefix(_RESIDUES): arrays.pop(key) for key in list(arrays) if key.startswith(_RESIDUES)}
    graph = ProteinGraph()
    tensors = {key: a if a.dtype.kind == "U" else torch.from_numpy(a) for key, a in arrays.items()}
    set_attributes(graph, tensors | meta["plain"])
    return GraphFile(graph, residues_from_arrays(own, meta["residues"]) if own else None, meta["info"])


def _codes(strings: np.ndarray) -> np.ndarray:
    """Return the ``(N, W)`` uint32 code points of ``(N,)`` strings: safetensors has no type for strings."""
    strings = np.ascontiguousarray(strings)
    return strings.view(np.uint32).reshape(len(strings), strings.dtype.itemsize // 4)
