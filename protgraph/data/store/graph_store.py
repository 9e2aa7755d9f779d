"""Graphs of many proteins in flat memory-mapped arrays: one ``.npy`` file per field, joined over proteins, and offsets.

A read is a few slices of memory that the operating system shares between processes; there are no files per protein and
no pickle. If every node of a protein has the same number K of edges, only sources are kept: the target of edge e is
e // K.

Not PyG's InMemoryDataset or OnDiskDataset: both unpickle what they read, and batches are collated from single graphs
(PyG 2.8.1, 2026-11-22).
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch

from protgraph.argument_types import check_arguments
from protgraph.data.graph.fields import FieldSpec, field, is_registered, register_field
from protgraph.data.graph.node_level import CA
from protgraph.data.graph.protein_graph import ProteinGraph, make_batch, set_attributes
from protgraph.data.store.residue_store import slice_residues
from protgraph.errors import DatasetError, FieldError
from protgraph.structure.residues.residues import Residues

__all__ = ["EDGES", "FORMAT", "META", "VERSION", "GraphStore", "crc32", "is_store"]

FORMAT, VERSION = "protgraph-store", 2
"""Name and version of the format, in the description of each store."""
META = "store.json"
"""File with the description of a store."""
EDGES = ("edge_source", "edge_target")
"""Arrays of ``edge_index``: int32 numbers of the nodes in their protein."""


class GraphStore:
    """Folder of protein graphs, opened without reading it; accepted wherever a dataset is.

    ``protgraph featurize FILES -o STORE`` writes one, with the residues of each protein beside its graph. Training,
    prediction and benchmarks on it give the results of the files: labels are derived from the residues, hidden
    information is removed from them, and features that the store lacks are computed from them.

    Parameters
    ----------
    path : str or Path
        Folder of ``protgraph featurize`` or :func:`~protgraph.data.store.store_writer.write_store`.

    Attributes
    ----------
    info : dict
        Plain data of the writer: ``features``, ``node_type``, ``read`` options, ``sources``, ``sha256``, ….
    sizes : ndarray
        ``(P,)`` int64, nodes of each protein.

    Raises
    ------
    DatasetError
        The folder is not a store, is incomplete, or has fields that the field table defines otherwise.

    Examples
    --------
    >>> import tempfile
    >>> from protgraph.data.graph.protein_graph import ProteinGraph
    >>> from protgraph.data.store.store_writer import write_store
    >>> graph = ProteinGraph(pos=torch.zeros(5, 3), name="1abc")
    >>> store = write_store(tempfile.mkdtemp() + "/graphs", [graph])
    >>> len(store), store.names, store[0].num_nodes
    (1, ['1abc'], 5)
    """

    @check_arguments("path")
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
        self._described: list[dict[str, Any]] | None = self._meta.get("residues")

    def __len__(self) -> int:
        return self._meta["proteins"]

    @property
    def names(self) -> list[str]:
        """Name of each protein."""
        return self.attributes.get("name", [""] * len(self))

    @property
    def num_residues(self) -> int:
        """Number of residues: nodes, or CA atoms if nodes are atoms."""
        types = self._arrays.get("atom_type")
        return int(self.sizes.sum()) if types is None else int((types == CA).sum())

    def __repr__(self) -> str:
        return f"GraphStore({str(self.path)!r}, proteins={len(self)}, nodes={int(self.sizes.sum())})"

    def __reduce__(self) -> tuple[object, ...]:
        return GraphStore, (self.path,)

    def __getitem__(self, i: int) -> ProteinGraph:
        """Return protein i; the tensors are copies, the caller may change them."""
        i = range(len(self))[i]
        values: dict[str, Any] = {key: self._attribute(key, i) for key in self._plain}
        for key in self._fields:
            a, b = span = self._rows(key, i)
            array = self._edge_index([i], [span], [0]) if key == "edge_index" else self._arrays[key][a:b].copy()
            values[key] = torch.from_numpy(array)
        if self._degree[i] is not None:
            values["degree"] = self._degree[i]
        graph = ProteinGraph()
        set_attributes(graph, values)
        return graph

    def values(self, key: str, i: int) -> np.ndarray | None:
        """Return one numeric field of protein i as a view that must not be changed; None if there is no such field."""
        if key not in self._arrays:
            return None
        a, b = self._rows(key, range(len(self))[i])
        return self._arrays[key][a:b]

    @property
    def has_residues(self) -> bool:
        """True if the residues of each protein are in the store."""
        return self._described is not None

    @property
    def sources(self) -> list[str]:
        """File, or file and FASTA record, that each protein was read from; its name if that is not recorded."""
        return self.info.get("sources", self.names)

    @property
    def checksums(self) -> list[str]:
        """Hexadecimal SHA-256 of the file of each protein."""
        return self.info.get("sha256", [""] * len(self))

    def residues(self, i: int) -> Residues:
        """Return the residues of protein i, nothing hidden; the caller may change them.

        Raises
        ------
        DatasetError
            The store was written without residues.
        """
        if self._described is None:
            raise DatasetError(f"graph store {str(self.path)!r} has no residues. Write it with 'protgraph featurize'.")
        return slice_residues(self._arrays, self._described[i], range(len(self))[i])

    def num_residues_of(self, i: int) -> int:
        """Return the number of residues of protein i."""
        i, ptr = range(len(self))[i], self._arrays["residues.ptr_residue"]
        return int(ptr[i + 1] - ptr[i])

    def __iter__(self) -> Iterator[ProteinGraph]:
        return (self[i] for i in range(len(self)))

    def collate(self, indices: Sequence[int]) -> Batch:
        """Return a batch of proteins, equal to ``collate([self[i] for i in indices])`` and several times faster.

        Raises
        ------
        FieldError
            The list is empty.
        """
        if len(indices) == 0:
            raise FieldError("collate: the list of proteins is empty")
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
        """Compare the checksums of all files.

        Raises
        ------
        DatasetError
            A file changed; with its name.
        """
        for name, known in self._meta["files"].items():
            if crc32(self.path / f"{name}.npy") != known["crc32"]:
                raise DatasetError(f"{self.path / f'{name}.npy'} is damaged (checksum). Write the store again.")

    def _rows(self, key: str, i: int) -> tuple[int, int]:
        ptr = self._ptr[self._meta["level"][key]]
        return ptr[i], ptr[i + 1]

    def _shifted(self, key: str) -> bool:
        return key in self._meta["specs"] and self._meta["specs"][key]["irreps"] == "index"

    def _attribute(self, key: str, i: int) -> Any:
        if key in self._arrays:  # strings of nodes
            a, b = self._rows(key, i)
            return self._arrays[key][a:b].copy()
        return self.attributes[key][i]

    def _edge_index(
        self, indices: Sequence[int], spans: Sequence[tuple[int, int]], starts: Sequence[int]
    ) -> np.ndarray:
        """Return ``(2, E)`` int64 edges of these proteins; nodes of protein b are numbered from ``starts[b]``."""
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


def is_store(path: object) -> bool:
    """Return True for the folder of a graph store."""
    return isinstance(path, str | os.PathLike) and (Path(path) / META).is_file()


def _read_meta(path: Path) -> dict[str, Any]:
    try:
        meta = json.loads((path / META).read_text(encoding="utf-8"))
        if meta["format"] != FORMAT:
            raise KeyError("format")
    except OSError as e:
        raise DatasetError(f"{str(path)!r} is not a graph store: {META} cannot be read") from e
    except (ValueError, KeyError, TypeError) as e:
        raise DatasetError(f"{path / META} is not the description of a graph store. Write the store again.") from e
    if meta["version"] != VERSION:
        raise DatasetError(f"{path} is a graph store of version {meta['version']}, not {VERSION}. Write it again.")
    return meta


def _open(path: Path, name: str, known: Mapping[str, Any]) -> np.ndarray:
    """Map one array, copy-on-write, so that nothing can write to the file."""
    file = path / f"{name}.npy"
    try:
        array = np.load(file, mmap_mode="c" if 0 not in known["shape"] else None, allow_pickle=False)
    except (OSError, ValueError, EOFError) as e:
        raise DatasetError(f"{file} is missing or incomplete. Write the store again.") from e
    if array.dtype.str != known["dtype"] or list(array.shape) != known["shape"]:
        raise DatasetError(
            f"{file} holds {array.dtype} {array.shape}, not {known['dtype']} {tuple(known['shape'])}. "
            "Write the store again."
        )
    return np.asarray(array)  # slices of a plain array are cheaper than of np.memmap


def _is_number(array: np.ndarray) -> bool:
    return array.dtype.kind in "biuf"


def _agree(path: Path, name: str, stored: FieldSpec) -> None:
    """Raise if the field table defines a stored field otherwise; register a field that it lacks."""
    if not is_registered(name):
        register_field(stored)
        return
    now = field(name)
    for part in ("level", "irreps", "dtype", "unit", "shape", "classes"):
        was, is_ = getattr(stored, part), getattr(now, part)
        if was != is_:
            raise DatasetError(f"{path}: field {name!r} had {part} {was!r}, now it is {is_!r}. Write the store again.")


def crc32(file: Path) -> int:
    """Return the CRC-32 of a file."""
    value = 0
    with open(file, "rb") as stream:
        while chunk := stream.read(1 << 20):
            value = zlib.crc32(chunk, value)
    return value
