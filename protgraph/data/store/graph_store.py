"""Prepared proteins in flat memory-mapped arrays: one ``.npy`` a field, joined over proteins, and offsets.

A read is a few slices of memory that the operating system shares between processes; there is no file a protein
and no pickle. Where every node of a protein has the same number of edges, only sources are kept: the target of
edge e is e // K.
"""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch

from protgraph.data.graph.fields import FieldSpec, field, is_registered, register_field
from protgraph.data.graph.node_level import CA
from protgraph.data.graph.protein_graph import ProteinGraph, fill, make_batch, shared_fields
from protgraph.errors import DatasetError, FieldError
from protgraph.file_io import atomic_write

__all__ = ["GraphStore", "write_store"]

FORMAT, VERSION = "protgraph-store", 1
META = "store.json"
EDGES = ("edge_source", "edge_target")  # how ``edge_index`` lies on disk: int32 nodes of each protein


class GraphStore:
    """A folder of prepared proteins, opened without reading it.

    Parameters
    ----------
    path : str or Path
        What :func:`write_store` wrote.

    Attributes
    ----------
    info : dict
        What the writer noted (dataset, task, featurizers).
    names : list of str
        Name of each protein.
    sizes : ndarray
        ``(P,)`` int64, nodes of each protein.

    Raises
    ------
    DatasetError
        It is no store, it was left incomplete, or its fields are no longer what the field table says.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._meta = _read_meta(self.path)
        self.info: dict[str, Any] = self._meta["info"]
        self.attributes: dict[str, list[Any]] = self._meta["attributes"]
        self._arrays = {name: _open(self.path, name, self._meta["files"][name]) for name in self._meta["files"]}
        order = [k for k in self._meta["order"] if k != "degree"]
        self._fields = [k for k in order if k == "edge_index" or (k in self._arrays and _is_number(self._arrays[k]))]
        self._plain = [k for k in order if k not in self._fields]
        for name, spec in self._meta["specs"].items():
            shape = None if spec["shape"] is None else tuple(spec["shape"])
            _agree(self.path, name, FieldSpec(**{**spec, "shape": shape}))
        self._ptr = {level: self._arrays[f"ptr_{level}"].tolist() for level in self._meta["levels"]}
        self.sizes = np.diff(self._arrays["ptr_node"])
        self._degree: list[int | None] = self._meta["degree"]

    def __len__(self) -> int:
        return self._meta["proteins"]

    @property
    def names(self) -> list[str]:
        """Name of each protein."""
        return self.attributes.get("name", [""] * len(self))

    @property
    def num_residues(self) -> int:
        """Residues of all proteins: nodes, or where nodes are atoms those that are a CA."""
        types = self._arrays.get("atom_type")
        return int(self.sizes.sum()) if types is None else int((types == CA).sum())

    def __repr__(self) -> str:
        return f"GraphStore({str(self.path)!r}, proteins={len(self)}, nodes={int(self.sizes.sum())})"

    def __reduce__(self) -> tuple[object, ...]:
        return GraphStore, (self.path,)

    def __getitem__(self, i: int) -> ProteinGraph:
        """Protein i; the tensors are copies, the caller may change them."""
        i = range(len(self))[i]
        values: dict[str, Any] = {key: self._attribute(key, i) for key in self._plain}
        for key in self._fields:
            a, b = span = self._rows(key, i)
            array = self._edge_index([i], [span], [0]) if key == "edge_index" else self._arrays[key][a:b].copy()
            values[key] = torch.from_numpy(array)
        if self._degree[i] is not None:
            values["degree"] = self._degree[i]
        graph = ProteinGraph()
        fill(graph, values)
        return graph

    def __iter__(self) -> Iterator[ProteinGraph]:
        return (self[i] for i in range(len(self)))

    def collate(self, indices: Sequence[int]) -> Batch:
        """The batch of these proteins, equal to ``collate([self[i] for i in indices])`` and several times faster."""
        if len(indices) == 0:
            raise FieldError("an empty list of proteins makes no batch")
        whole = range(len(self))
        indices = [whole[int(i)] for i in indices]
        sizes = self.sizes[indices].tolist()
        starts = [*accumulate(sizes, initial=0)]  # first node of each in the batch
        spans = {level: [(ptr[i], ptr[i + 1]) for i in indices] for level, ptr in self._ptr.items()}
        counts = {level: [b - a for a, b in own] for level, own in spans.items()}
        tensors: dict[str, Tensor] = {}
        rows: dict[str, list[int]] = {}
        for key in self._fields:
            level = self._meta["level"][key]
            own, rows[key] = spans[level], counts[level]
            if key == "edge_index":
                array = self._edge_index(indices, own, starts)
            else:
                array = np.concatenate([self._arrays[key][a:b] for a, b in own])
                if self._shifted(key):
                    array += np.repeat(starts[:-1], rows[key]).reshape(-1, *[1] * (array.ndim - 1))
            tensors[key] = torch.from_numpy(array)
        attributes: dict[str, list[Any]] = {"degree": [self._degree[i] for i in indices]}
        attributes |= {key: [self._attribute(key, i) for i in indices] for key in self._plain}
        return make_batch(tensors, sizes=sizes, rows=rows, attributes=attributes)

    def verify(self) -> None:
        """Read everything and compare checksums; a changed byte is a :class:`DatasetError` that names the file."""
        for name, known in self._meta["files"].items():
            if _checksum(self.path / f"{name}.npy") != known["crc32"]:
                raise DatasetError(f"{self.path / f'{name}.npy'} is damaged (checksum); prepare the data again")

    def _rows(self, key: str, i: int) -> tuple[int, int]:
        ptr = self._ptr[self._meta["level"][key]]
        return ptr[i], ptr[i + 1]

    def _shifted(self, key: str) -> bool:
        return key in self._meta["specs"] and self._meta["specs"][key]["irreps"] == "index"

    def _attribute(self, key: str, i: int) -> Any:
        if key in self._arrays:  # texts of nodes
            a, b = self._rows(key, i)
            return self._arrays[key][a:b].copy()
        return self.attributes[key][i]

    def _edge_index(
        self, indices: Sequence[int], spans: Sequence[tuple[int, int]], starts: Sequence[int]
    ) -> np.ndarray:
        """``(2, E)`` int64 of these proteins in a row, of which protein b's nodes are numbered from ``starts[b]``."""
        index = np.empty((2, sum(b - a for a, b in spans)), np.int64)
        sides = [self._arrays[name] for name in EDGES if name in self._arrays]
        for row, side in zip(index, sides, strict=False):
            np.concatenate([side[a:b] for a, b in spans], out=row)
            end = 0
            for (a, b), start in zip(spans, starts, strict=False):
                begin, end = end, end + b - a
                row[begin:end] += start
        if len(sides) == 1:
            sizes, degrees = self.sizes[indices], [self._degree[i] for i in indices]
            nodes = np.arange(sizes.sum())
            if degrees[0] and len(set(degrees)) == 1:
                index[1].reshape(-1, degrees[0])[:] = nodes[:, None]  # (N, K)
            else:
                index[1] = np.repeat(nodes, np.repeat(degrees, sizes))
        return index


def write_store(
    path: str | Path, graphs: Iterable[ProteinGraph], *, info: Mapping[str, Any] | None = None, overwrite: bool = False
) -> GraphStore:
    """Write proteins to a folder, which appears whole or not at all.

    Parameters
    ----------
    path : str or Path
        Folder to make.
    graphs : iterable of ProteinGraph
        All with the same fields.
    info : mapping, optional
        Plain data to keep beside them.
    overwrite : bool
        Whether a store (nothing else) that lies there is replaced.

    Raises
    ------
    DatasetError
        The folder exists already, or there is no protein.
    FieldError
        Two graphs differ in their fields.
    """
    path = Path(path)
    if path.exists() and not (overwrite and (path / META).is_file()):
        hint = "give overwrite=True to replace it" if (path / META).is_file() else "and it is no store"
        raise DatasetError(f"{path} exists already {hint}")
    arrays, meta = _flatten(list(graphs))
    with atomic_write(path, folder=True) as temporary:
        for name, array in arrays.items():
            np.save(temporary / f"{name}.npy", array, allow_pickle=False)
            entry = {"dtype": array.dtype.str, "shape": list(array.shape)}
            meta["files"][name] = {**entry, "crc32": _checksum(temporary / f"{name}.npy")}
        meta["info"] = dict(info or {})
        (temporary / META).write_text(_plain_text(meta), encoding="utf-8")
        if path.exists():
            shutil.rmtree(path)
    return GraphStore(path)


def _flatten(graphs: list[ProteinGraph]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Joined arrays by file name, and everything else as plain data."""
    if not graphs:
        raise DatasetError("there is no protein to store")
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
                raise FieldError(f"field {key!r} does not have one row a {level} in every protein")
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
    """What the rows count, and the arrays of one field."""
    if key != "edge_index":
        level = graphs[0].level(key)
        if level is None:
            raise FieldError(f"{key!r} of {graphs[0].name!r} is a tensor of no known level; set y_level")
        return level, {key: torch.cat(values).numpy()}
    joined = torch.cat(values, dim=1).to(torch.int32).numpy()
    implicit = all(g.get("degree") is not None for g in graphs)
    return "edge", dict(zip(EDGES[: 1 if implicit else 2], np.ascontiguousarray(joined), strict=False))


def _plain_text(meta: Mapping[str, Any]) -> str:
    for part in ("info", "attributes"):
        for key, value in meta[part].items():
            try:
                json.dumps(value)
            except (TypeError, ValueError) as e:
                raise FieldError(f"{key!r} cannot be stored, it is no tensor and no plain data: {e}") from e
    return json.dumps(meta)


def _read_meta(path: Path) -> dict[str, Any]:
    try:
        meta = json.loads((path / META).read_text(encoding="utf-8"))
        if meta["format"] != FORMAT:
            raise KeyError("format")
    except OSError as e:
        raise DatasetError(f"no prepared data at {str(path)!r}: {META} cannot be read") from e
    except (ValueError, KeyError, TypeError) as e:
        raise DatasetError(f"{path / META} is not the description of prepared data; prepare it again") from e
    if meta["version"] != VERSION:
        raise DatasetError(f"{path} is prepared data of version {meta['version']}, not {VERSION}; prepare it again")
    return meta


def _open(path: Path, name: str, known: Mapping[str, Any]) -> np.ndarray:
    """Map one array; private to this process, so that nothing can write to the file."""
    file = path / f"{name}.npy"
    try:
        array = np.load(file, mmap_mode="c" if 0 not in known["shape"] else None, allow_pickle=False)
    except (OSError, ValueError, EOFError) as e:
        raise DatasetError(f"{file} is missing or incomplete; prepare the data again") from e
    if array.dtype.str != known["dtype"] or list(array.shape) != known["shape"]:
        raise DatasetError(
            f"{file} holds {array.dtype} {array.shape}, not {known['dtype']} {tuple(known['shape'])}; prepare it again"
        )
    return np.asarray(array)  # slices of a plain array are cheaper than of np.memmap


def _is_number(array: np.ndarray) -> bool:
    return array.dtype.kind in "biuf"


def _agree(path: Path, name: str, stored: FieldSpec) -> None:
    """A stored field means what the field table says now; one that nobody registered brings its own spec."""
    if not is_registered(name):
        register_field(stored)
        return
    now = field(name)
    for part in ("level", "irreps", "dtype", "unit", "shape", "classes"):
        was, is_ = getattr(stored, part), getattr(now, part)
        if was != is_:
            raise DatasetError(f"{path}: field {name!r} had {part} {was!r}, now it is {is_!r}; prepare again")


def _checksum(file: Path) -> int:
    value = 0
    with open(file, "rb") as stream:
        while chunk := stream.read(1 << 20):
            value = zlib.crc32(chunk, value)
    return value
