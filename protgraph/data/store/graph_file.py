"""One graph in one file, written in a fraction of a millisecond: what is done of a folder until all is done."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from protgraph.data.graph.protein_graph import ProteinGraph, fill
from protgraph.errors import DatasetError, FieldError
from protgraph.file_io import atomic_write

__all__ = ["read_graph_info", "read_graph_file", "write_graph_file"]


def write_graph_file(path: str | Path, graph: ProteinGraph, *, info: Mapping[str, Any]) -> None:
    """Write a graph to a safetensors file, which appears whole or not at all.

    Parameters
    ----------
    path : str or Path
        The file; one that is there is replaced.
    graph : ProteinGraph
        Tensors, arrays of texts, and plain data.
    info : mapping
        Plain data to keep beside it.

    Raises
    ------
    FieldError
        Something is no tensor and no plain data.
    """
    from safetensors.numpy import save_file

    path = Path(path)
    tensors = {key: np.ascontiguousarray(value.numpy()) for key, value in graph.items() if isinstance(value, Tensor)}
    texts = {key: (v.dtype.str, v.tolist()) for key, v in graph.items() if isinstance(v, np.ndarray)}
    plain = {key: value for key, value in graph.items() if key not in tensors and key not in texts}
    try:
        told = {"info": json.dumps(dict(info)), "texts": json.dumps(texts), "plain": json.dumps(plain)}
    except (TypeError, ValueError) as e:
        raise FieldError(f"{graph.name!r} cannot be stored, it holds no plain data: {e}") from e
    with atomic_write(path) as temporary:
        save_file(tensors, temporary, metadata=told)


def read_graph_file(path: str | Path) -> ProteinGraph:
    """The graph that :func:`write_graph_file` wrote.

    Raises
    ------
    DatasetError
        The file is missing or damaged.
    """
    tensors, told = _read(path, whole=True)
    graph = ProteinGraph()
    values: dict[str, Any] = {key: torch.from_numpy(value) for key, value in tensors.items()}
    texts = {key: np.array(value, dtype=dtype) for key, (dtype, value) in told["texts"].items()}
    fill(graph, values | texts | told["plain"])
    return graph


def read_graph_info(path: str | Path) -> dict[str, Any]:
    """What was kept beside the graph; the graph itself is not read."""
    return _read(path, whole=False)[1]["info"]


def _read(path: str | Path, *, whole: bool) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            told = {key: json.loads(text) for key, text in (file.metadata() or {}).items()}
            tensors = {key: file.get_tensor(key) for key in file.keys()} if whole else {}  # noqa: SIM118 -- no mapping
    except (OSError, SafetensorError, ValueError) as e:
        raise DatasetError(f"{path} is missing or damaged ({e}); remove it and begin again") from e
    if told.keys() != {"info", "texts", "plain"}:
        raise DatasetError(f"{path} is no graph that protgraph left; remove it and begin again")
    return tensors, told
