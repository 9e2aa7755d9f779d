"""Writing of graph stores: joined arrays of all proteins, one file per field."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from protgraph.data.graph.fields import field, is_registered
from protgraph.data.graph.protein_graph import ProteinGraph, shared_fields
from protgraph.data.store.graph_store import EDGES, FORMAT, META, VERSION, GraphStore, crc32, is_store
from protgraph.data.store.residue_store import flatten_residues
from protgraph.errors import DatasetError, FieldError
from protgraph.file_io import atomic_write
from protgraph.structure.residues.residues import Residues

__all__ = ["write_store"]


def write_store(
    path: str | Path,
    graphs: Iterable[ProteinGraph],
    *,
    residues: Iterable[Residues] | None = None,
    info: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> GraphStore:
    """Write proteins to a folder, atomically; an existing store is replaced when the new one is complete.

    Parameters
    ----------
    path : str or Path
        Folder to create.
    graphs : iterable of ProteinGraph
        All with the same fields.
    residues : iterable of Residues, optional
        Residues of each graph, from which other features and labels can be computed.
    info : mapping, optional
        Plain data to keep beside them.
    overwrite : bool
        Replace an existing store; other folders are never replaced.

    Raises
    ------
    DatasetError
        The folder exists, or there are no graphs.
    FieldError
        Two graphs differ in their fields.
    """
    path = Path(path)
    if path.exists() and not (overwrite and is_store(path)):
        hint = "Give overwrite=True to replace it." if is_store(path) else "It is not a graph store."
        raise DatasetError(f"{path} exists. {hint}")
    arrays, meta = _flatten(list(graphs))
    if residues is not None:
        own, meta["residues"] = flatten_residues(list(residues))
        arrays |= own
    meta["info"] = dict(info or {})
    _check_plain(meta)
    with atomic_write(path, folder=True, overwrite=overwrite) as temporary:
        for name, array in arrays.items():
            np.save(temporary / f"{name}.npy", array, allow_pickle=False)
            entry = {"dtype": array.dtype.str, "shape": list(array.shape)}
            meta["files"][name] = {**entry, "crc32": crc32(temporary / f"{name}.npy")}
        (temporary / META).write_text(json.dumps(meta), encoding="utf-8")
    return GraphStore(path)


def _flatten(graphs: list[ProteinGraph]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the joined arrays by file name, and everything else as plain data."""
    if not graphs:
        raise DatasetError("write_store: there are no graphs to write")
    order = shared_fields(graphs)
    meta: dict[str, Any] = {"format": FORMAT, "version": VERSION, "proteins": len(graphs), "order": order}
    meta |= {"specs": {}, "level": {}, "levels": [], "attributes": {}, "files": {}}
    meta["degree"] = [None if (k := g.get("degree")) is None else int(k) for g in graphs]
    counts: dict[str, list[int]] = {"node": [g.num_nodes for g in graphs]}
    arrays: dict[str, np.ndarray] = {}
    for key in order:
        values = [g[key] for g in graphs]
        if isinstance(values[0], Tensor):
            level, arrays_of_key = _flat_tensors(graphs, key, values)
            arrays |= arrays_of_key
            meta["level"][key] = level
            rows = [v.size(1 if key == "edge_index" else 0) for v in values]
            if counts.setdefault(level, rows) != rows:
                raise FieldError(f"field {key!r} does not have one row per {level} in every protein")
            if is_registered(key):
                meta["specs"][key] = asdict(field(key))
        elif isinstance(values[0], np.ndarray) and [len(v) for v in values] == counts["node"]:
            arrays[key], meta["level"][key] = np.concatenate(values), "node"
        else:
            meta["attributes"][key] = values
    for level, rows in counts.items():
        arrays[f"ptr_{level}"] = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
    meta["levels"] = list(counts)
    return arrays, meta


def _flat_tensors(graphs: list[ProteinGraph], key: str, values: list[Tensor]) -> tuple[str, dict[str, np.ndarray]]:
    """Return the level of the rows, and the arrays of one field."""
    if key != "edge_index":
        level = graphs[0].level(key)
        if level is None:
            raise FieldError(f"tensor {key!r} of {graphs[0].name!r} has no level. Set y_level.")
        return level, {key: torch.cat(values).numpy()}
    joined = torch.cat(values, dim=1).to(torch.int32).numpy()
    implicit = all(g.get("degree") is not None for g in graphs)
    return "edge", dict(zip(EDGES[: 1 if implicit else 2], np.ascontiguousarray(joined), strict=False))


def _check_plain(meta: Mapping[str, Any]) -> None:
    for part in ("info", "attributes"):
        for key, value in meta[part].items():
            try:
                json.dumps(value)
            except (TypeError, ValueError) as e:
                raise FieldError(f"{key!r} cannot be stored: {e}. Allowed: tensors, arrays and plain data.") from e
