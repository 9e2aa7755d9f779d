"""Writing of graph stores: joined arrays of the proteins of a shard in one file, and the description of the store."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from dataclasses import field as dataclass_field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from protgraph.data.graph.fields import edge_set_of, field, is_node_set, is_registered
from protgraph.data.graph.protein_graph import CA, LossCounts, ProteinGraph, shared_fields
from protgraph.data.store.graph_shard import EDGES, flatten_residues, map_shard_file, write_shard_file
from protgraph.data.store.graph_store import GraphStore
from protgraph.data.store.store_description import ShardEntry, StoreDescription, is_store_folder, shard_path
from protgraph.errors import DatasetError, FieldError
from protgraph.failure import Failure
from protgraph.file_io import atomic_write, file_sha256
from protgraph.structure.residues.residues import Residues

__all__ = ["ShardWriter", "shard_entry", "write_shard", "write_store"]

SHARD_BYTES = 32 << 20
"""Bytes of the fields of a shard."""


def write_store(
    path: str | Path,
    graphs: Iterable[ProteinGraph],
    *,
    residues: Iterable[Residues] | None = None,
    sources: Sequence[str] = (),
    checksums: Sequence[str] = (),
    info: Mapping[str, Any] | None = None,
    overwrite: bool = False,
) -> GraphStore:
    """Write proteins to a store of one shard, atomically; an existing store is replaced when the new one is complete.

    :func:`protgraph.prepare.prepare_store` writes stores of several shards, from files.

    Parameters
    ----------
    path : str or Path
        Folder to create.
    graphs : iterable of ProteinGraph
        All with the same fields.
    residues : iterable of Residues, optional
        Residues of each graph, from which other features and labels can be computed.
    sources, checksums : sequence of str, optional
        File of each graph, and its hexadecimal SHA-256.
    info : mapping, optional
        Plain data to keep beside them.
    overwrite : bool
        Replace an existing store; other folders are never replaced.

    Raises
    ------
    DatasetError
        The folder exists, or there are no graphs.
    FieldError
        Two graphs differ in their fields, or an attribute is neither an array nor plain data.
    """
    path, graphs = Path(path), list(graphs)
    if path.exists() and not (overwrite and is_store_folder(path)):
        hint = "Give overwrite=True to replace it." if is_store_folder(path) else "It is not a graph store."
        raise DatasetError(f"{path} exists. {hint}")
    if not graphs:
        raise DatasetError("write_store: there are no graphs to write")
    own = None if residues is None else list(residues)
    _check_plain("info", info or {})
    with atomic_write(path, folder=True, overwrite=overwrite) as temporary:
        entry, layout = write_shard(temporary, "graphs", graphs, residues=own, sources=sources, checksums=checksums)
        StoreDescription(layout, dict(info or {}), (entry,)).write(temporary)
    return GraphStore(path)


class ShardWriter:
    """Write graphs one after the other to a folder that :class:`GraphStore` opens; only one shard is in memory.

    ``folder``: the store. It is complete after :meth:`close`. ``shard_bytes``: bytes of arrays and tensors after which
    a shard is written. ``info``: plain data to keep beside the graphs.

    Examples
    --------
    >>> import tempfile, torch
    >>> from protgraph.data.store.graph_store import GraphStore
    >>> folder = tempfile.mkdtemp()
    >>> writer = ShardWriter(folder, shard_bytes=100)
    >>> for name in ("1abc", "2abc", "3abc"):
    ...     writer.add(ProteinGraph(pos=torch.zeros(5, 3), name=name))
    >>> _ = writer.close()
    >>> store = GraphStore(folder)
    >>> store.names, len(store.shards)
    (['1abc', '2abc', '3abc'], 2)
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        shard_bytes: int = SHARD_BYTES,
        info: Mapping[str, Any] | None = None,
    ) -> None:
        self.folder, self.shard_bytes, self.info = Path(folder), shard_bytes, dict(info or {})
        self._entries: list[ShardEntry] = []
        self._layout: dict[str, Any] | None = None
        self._graphs: list[ProteinGraph] = []
        self._bytes = 0

    def add(self, graph: ProteinGraph) -> None:
        """Append a graph."""
        self._graphs.append(graph)
        self._bytes += sum(v.nbytes for v in graph.to_dict().values() if isinstance(v, Tensor | np.ndarray))
        if self._bytes >= self.shard_bytes:
            self._write()

    def close(self) -> StoreDescription:
        """Write the last shard and the description of the store; raise :class:`DatasetError` if there are no graphs."""
        if self._graphs:
            self._write()
        if self._layout is None:
            raise DatasetError(f"ShardWriter: no graphs were added to {str(self.folder)!r}. Add at least one.")
        description = StoreDescription(self._layout, self.info, tuple(self._entries))
        description.write(self.folder)
        return description

    def _write(self) -> None:
        entry, layout = write_shard(self.folder, f"{len(self._entries):06d}", self._graphs)
        if self._layout not in (None, layout):
            raise FieldError(
                f"graphs {self._graphs[0].name!r} to {self._graphs[-1].name!r} have other fields than those before. "
                "All graphs of a store need the same fields, shapes and attributes."
            )
        self._entries.append(entry)
        self._layout, self._graphs, self._bytes = layout, [], 0


def write_shard(
    folder: str | Path,
    key: str,
    graphs: Sequence[ProteinGraph],
    *,
    residues: Sequence[Residues] | None = None,
    sources: Sequence[str] = (),
    checksums: Sequence[str] = (),
    failures: Sequence[tuple[int, Failure]] = (),
    inputs: Sequence[str] = (),
) -> tuple[ShardEntry, dict[str, Any]]:
    """Write a shard to the folder of a store; the same content gives the same bytes."""
    flat = _flatten(graphs)
    arrays, described = flat.arrays, None
    if residues is not None and graphs:
        residue_arrays, described = flatten_residues(residues)
        arrays |= residue_arrays
        flat.layout["has_residues"] = True
    for name, value in flat.attributes.items():
        _check_plain(name, value)
    layout = json.loads(json.dumps(flat.layout))  # as it is read
    failed = []
    for at, failure in failures:
        columns = asdict(failure)
        del columns["seconds"]  # differ from run to run
        failed.append([at, columns])
    proteins: dict[str, object] = {"attributes": flat.attributes, "residues": described, "failures": failed}
    proteins |= {"sources": list(sources), "sha256": list(checksums), "inputs": list(inputs)}
    path = shard_path(folder, key)
    nodes, edges = sum(g.num_nodes for g in graphs), sum(g.num_edges for g in graphs)
    count = nodes if "atom_type" not in arrays else int((arrays["atom_type"] == CA).sum())
    sizes = {"proteins": len(graphs), "nodes": nodes, "edges": edges, "residues": count, "failures": len(failed)}
    meta = {"layout": layout, "levels": list(flat.counts), "sizes": sizes}
    sha256, size = write_shard_file(path, arrays, {"meta": meta, "proteins": proteins})
    return ShardEntry(key, sha256, size, **sizes), layout if graphs else {}


def shard_entry(path: str | Path) -> ShardEntry:
    """Return the entry of a shard that was written before."""
    path = Path(path)
    sizes = map_shard_file(path).plain("meta")["sizes"]
    return ShardEntry(path.stem, file_sha256(path), path.stat().st_size, **sizes)


@dataclass
class _FlatGraphs:
    """Fields of graphs, joined."""

    layout: dict[str, Any]
    counts: dict[str, list[int]]  # level → rows of each graph
    arrays: dict[str, np.ndarray] = dataclass_field(default_factory=dict)
    attributes: dict[str, list[Any]] = dataclass_field(default_factory=dict)  # of each graph

    def add_tensors(self, graphs: Sequence[ProteinGraph], key: str, values: list[Tensor]) -> None:
        """Add a field of tensors with a row per node, edge, … of each graph."""
        level, arrays = _flat_tensors(graphs, key, values)
        self.arrays |= arrays
        self.layout["level"][key] = level
        self.layout["numeric"].append(key)
        rows = [v.size(0 if edge_set_of(key) is None else 1) for v in values]
        if self.counts.setdefault(level, rows) != rows:
            raise FieldError(f"field {key!r} does not have one row per {level} in every protein")
        if is_node_set(level):
            self.layout["specs"][level] = _stored_spec(level)
        if is_registered(key):
            self.layout["specs"][key] = _stored_spec(key)

    def add_node_arrays(self, key: str, values: list[np.ndarray]) -> None:
        """Add a field of arrays with a row per node of each graph."""
        self.arrays[key] = np.concatenate(values)
        self.layout["level"][key] = "node"
        if self.arrays[key].dtype.kind in "biuf":
            self.layout["numeric"].append(key)

    def add_attributes(self, key: str, values: list[Any]) -> None:
        """Add an attribute of each graph as plain data."""
        self.attributes[key] = [value.to_dict() if isinstance(value, LossCounts) else value for value in values]


def _flatten(graphs: Sequence[ProteinGraph]) -> _FlatGraphs:
    """Return the joined fields of graphs, and the offsets of each graph in the rows of each level."""
    order = shared_fields(graphs) if graphs else []
    layout: dict[str, Any] = {"order": order, "numeric": [], "level": {}, "specs": {}, "has_residues": False}
    flat = _FlatGraphs(layout, {"node": [g.num_nodes for g in graphs]})
    for key in order:
        values = [g[key] for g in graphs]
        if isinstance(values[0], Tensor):
            flat.add_tensors(graphs, key, values)
        elif isinstance(values[0], np.ndarray) and [len(v) for v in values] == flat.counts["node"]:
            flat.add_node_arrays(key, values)
        else:
            flat.add_attributes(key, values)
    for level, rows in flat.counts.items():
        flat.arrays[f"ptr_{level}"] = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
    flat.arrays["degree"] = _degrees(graphs)
    return flat


def _degrees(graphs: Sequence[ProteinGraph]) -> np.ndarray:
    """Return the number of edges of every node of each graph, ``(P,)`` int32; −1 where it differs between nodes."""
    degrees = np.full(len(graphs), -1, np.int32)
    for i, graph in enumerate(graphs):
        degree = graph.get("degree")
        if degree is not None:
            degrees[i] = int(degree)
    return degrees


def _stored_spec(key: str) -> dict[str, Any]:
    """Return the spec of a field as plain data; ``on`` only if it is on a named set, as in earlier stores."""
    spec = asdict(field(key))
    if not spec["on"]:
        del spec["on"]
    return spec


def _flat_tensors(graphs: Sequence[ProteinGraph], key: str, values: list[Tensor]) -> tuple[str, dict[str, np.ndarray]]:
    """Return the level of the rows, and the arrays of one field."""
    if key != "edge_index":
        level = graphs[0].level(key)
        if edge_set_of(key) is not None:
            values = [v.T.to(torch.int32) for v in values]  # (E, 2)
        if level is None:
            raise FieldError(f"tensor {key!r} of {graphs[0].name!r} has no level. Set y_level.")
        return level, {key: torch.cat(values).contiguous().numpy()}
    joined = torch.cat(values, dim=1).to(torch.int32).numpy()
    implicit = all(g.get("degree") is not None for g in graphs)
    return "edge", dict(zip(EDGES[: 1 if implicit else 2], np.ascontiguousarray(joined), strict=False))


def _check_plain(name: str, value: object) -> None:
    try:
        json.dumps(value)
    except (TypeError, ValueError) as e:
        raise FieldError(f"{name!r} cannot be stored: {e}. Allowed: tensors, arrays and plain data.") from e
