"""Graphs of many proteins in memory-mapped shards, opened without reading them.

A read is a few slices of memory that the operating system shares between processes; there are no files per protein and
no pickle.

Not PyG's InMemoryDataset or OnDiskDataset: both unpickle what they read, and batches are collated from single graphs
(PyG 2.8.1, 2026-11-22).
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch

from protgraph.argument_types import check_arguments
from protgraph.data.graph.fields import NODES, FieldSpec, edge_set_of
from protgraph.data.graph.protein_graph import ProteinGraph, make_batch, node_shifts, set_attributes
from protgraph.data.store.graph_shard import EDGES, GraphShard
from protgraph.data.store.store_description import register_stored_field, store_files, store_index
from protgraph.errors import DatasetError, FieldError, list_first
from protgraph.failure import Failure
from protgraph.file_io import file_sha256
from protgraph.ops.edges import edge_ends
from protgraph.structure.io.read_options import ReadOptions
from protgraph.structure.residues.residues import Residues

__all__ = ["GraphStore", "Members", "collate_members", "join_edge_index", "open_store"]

_MOST_OPEN = 16_384  # shards that are mapped at a time; Linux allows 65 530 maps per process


class GraphStore:
    """Folder of protein graphs, opened without reading it; accepted wherever a dataset is.

    ``protgraph featurize FILES -o STORE`` writes one, with the residues of each protein beside its graph. Training,
    prediction and benchmarks on it give the results of the files: labels are derived from the residues, hidden
    information is removed from them, and features that the store lacks are computed from them.

    The proteins are in one or more shards. Opening a store takes time for each shard, not for each protein; a shard is
    mapped into memory when it is first used.

    Parameters
    ----------
    path : str or Path
        Folder of ``protgraph featurize`` or :func:`~protgraph.data.store.store_writer.write_store`, or the address of
        a copy, e.g. ``s3://bucket/folder``, whose shards are downloaded when they are used.

    Attributes
    ----------
    info : dict
        Plain data of the writer: ``features``, ``node_type``, ``read`` options, ….
    shards : tuple of ShardEntry
        Sizes and checksums of the shards, in the order of the proteins.
    description : StoreDescription
        Content of ``store.json``.

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
        self._files = store_files(path)
        self.path = self._files.path
        self.description = self._files.describe()
        self.info: dict[str, Any] = self.description.info
        self.shards = self.description.shards
        self._layout = self.description.layout
        for name, spec in self._layout["specs"].items():
            shape = None if spec["shape"] is None else tuple(spec["shape"])
            register_stored_field(self.path, name, FieldSpec(**{**spec, "shape": shape}))
        self._numeric: list[str] = self._layout["numeric"]
        self._plain = [key for key in self._layout["order"] if key not in self._numeric]
        sizes = [shard.proteins for shard in self.shards]
        self._starts = [*accumulate(sizes, initial=0)]
        self._open: dict[int, GraphShard] = {}

    def __len__(self) -> int:
        return self._starts[-1]

    @property
    def read_options(self) -> ReadOptions:
        """Options with which the files were read."""
        return ReadOptions.from_dict(self.info.get("read", {}), where=str(self.path))

    @cached_property
    def sizes(self) -> np.ndarray:
        """``(P,)`` int64, nodes of each protein."""
        return np.concatenate([np.zeros(0, np.int64), *(shard.sizes for shard in self._all())])

    @cached_property
    def names(self) -> list[str]:
        """Name of each protein."""
        if "name" not in self._plain:
            return [""] * len(self)
        return [name for shard in self._all() for name in shard.attributes["name"]]

    @cached_property
    def sources(self) -> list[str]:
        """File, or file and FASTA record, that each protein was read from; its name if that is not recorded."""
        return self._recorded(lambda shard: shard.sources) or self.names

    @cached_property
    def _numbers(self) -> dict[str, int]:
        numbers: dict[str, int] = {}
        for i, source in enumerate(self.sources):
            numbers.setdefault(source, i)  # the first of equal ones
        return numbers

    def number_of(self, source: str) -> int | None:
        """Return the number of the first protein that was read from a file; None if there is none."""
        return self._numbers.get(source)

    @cached_property
    def checksums(self) -> list[str]:
        """Hexadecimal SHA-256 of the file of each protein."""
        return self._recorded(lambda shard: shard.checksums) or [""] * len(self)

    @property
    def failures(self) -> Iterator[Failure]:
        """Records of the proteins and files that could not be used, in the order of the sources."""
        for number, entry in enumerate(self.shards):
            if entry.failures:
                yield from (failure for _, failure in self.shard(number).failures)

    @property
    def num_residues(self) -> int:
        """Number of residues: nodes, or CA atoms if nodes are atoms."""
        return sum(shard.residues for shard in self.shards)

    @property
    def has_residues(self) -> bool:
        """True if the residues of each protein are in the store."""
        return self._layout["has_residues"]

    def __repr__(self) -> str:
        nodes = sum(shard.nodes for shard in self.shards)
        return f"GraphStore({str(self.path)!r}, proteins={len(self)}, nodes={nodes})"

    def __reduce__(self) -> tuple[object, ...]:
        return GraphStore, (self.path,)

    def __getitem__(self, i: int) -> ProteinGraph:
        """Return protein i; the tensors are copies, the caller may change them."""
        shard, i = self._place(i)
        values: dict[str, Any] = {key: shard.attribute(key, i) for key in self._plain}
        for key in self._numeric:
            a, b = shard.rows(key, i)
            if key == "edge_index":
                values[key] = join_edge_index([(shard, i)], [b - a], [0, int(shard.sizes[i])])
            elif edge_set_of(key) is not None:
                values[key] = torch.from_numpy(shard.arrays[key][a:b].T.astype(np.int64, order="C"))
            else:
                values[key] = torch.from_numpy(shard.arrays[key][a:b].copy())
        degree = shard.degrees[i]
        if degree is not None:
            values["degree"] = np.int64(degree)  # PyG's batching makes a tensor of Python's integers
        graph = ProteinGraph()
        set_attributes(graph, values)
        return graph

    def __iter__(self) -> Iterator[ProteinGraph]:
        return (self[i] for i in range(len(self)))

    def values(self, key: str, i: int) -> np.ndarray | None:
        """Return one numeric field ``(M, …)`` of protein i as a view that must not be changed; None if it has none."""
        shard, i = self._place(i)
        if key not in shard.arrays:
            return None
        a, b = shard.rows(key, i)
        return shard.arrays[key][a:b]

    def residues(self, i: int) -> Residues:
        """Return the residues of protein i, nothing hidden; the caller may change them.

        Raises
        ------
        DatasetError
            The store was written without residues.
        """
        shard, i = self._place(i)
        return shard.residues(i)

    def num_residues_of(self, i: int) -> int:
        """Return the number of residues of protein i."""
        shard, i = self._place(i)
        return shard.num_residues_of(i)

    def shard(self, number: int) -> GraphShard:
        """Return an opened shard.

        Raises
        ------
        DatasetError
            Its file is missing or incomplete, or has other fields than the store.
        """
        opened = self._open.get(number)
        if opened is None:
            (path,) = self._files.shard_files([self.shards[number]])
            opened = GraphShard(path)
            if len(opened) and opened.layout != self._layout:
                raise DatasetError(f"{opened.path} has other fields than the store. Write the store again.")
            if len(self._open) >= _MOST_OPEN:
                self._open.pop(next(iter(self._open)))
            self._open[number] = opened
        return opened

    def shard_of(self, i: int) -> tuple[int, int]:
        """Return the number of the shard of protein i, and the place of the protein in it."""
        i = range(len(self))[i]
        number = bisect_right(self._starts, i) - 1
        return number, i - self._starts[number]

    def collate(self, indices: Sequence[int], *, fields: Collection[str] | None = None) -> Batch:
        """Return a batch of proteins, equal to ``collate([self[i] for i in indices])`` and several times faster.

        Parameters
        ----------
        fields : collection of str, optional
            Fields and attributes to read, of those that the store has; default: all.

        Raises
        ------
        FieldError
            The list is empty.
        """
        if not len(indices):
            raise FieldError("collate: the list of proteins is empty")
        numeric = self._numeric
        plain = self._plain
        if fields is not None:
            numeric = [key for key in numeric if key in fields]
            plain = [key for key in plain if key in fields]
        members = [self._place(int(i)) for i in indices]
        levels = {key: self._layout["level"][key] for key in numeric}
        shifted = {key for key, spec in self._layout["specs"].items() if spec["irreps"] == "index"}
        return collate_members(members, levels, plain, shifted)

    def damaged_shards(self) -> list[Path]:
        """Return the files of shards whose checksums differ; all files are read.

        Raises
        ------
        DatasetError
            A file is missing or incomplete.
        """
        self._files.describe()  # raises for missing files
        damaged = []
        for path, shard in zip(self._files.shard_files(self.shards), self.shards, strict=True):
            if file_sha256(path) != shard.sha256:
                damaged.append(path)
        return damaged

    def verify(self) -> None:
        """Compare the checksums of all shards.

        Raises
        ------
        DatasetError
            Files changed; with their names.
        """
        damaged = [str(path) for path in self.damaged_shards()]
        if damaged:
            raise DatasetError(
                f"graph store {str(self.path)!r}: {len(damaged)} of {len(self.shards)} shards are damaged (checksum): "
                f"{list_first(damaged, 5)}. Run 'protgraph featurize' again, which writes only these."
            )

    def _place(self, i: int) -> tuple[GraphShard, int]:
        number, place = self.shard_of(i)
        return self._open.get(number) or self.shard(number), place

    def _all(self) -> Iterator[GraphShard]:
        self._files.shard_files([entry for entry in self.shards if entry.proteins])  # of an address: all at once
        return (self.shard(number) for number, entry in enumerate(self.shards) if entry.proteins)

    def _recorded(self, read: Callable[[GraphShard], list[str]]) -> list[str]:
        return [value for shard in self._all() for value in read(shard)]


Members = Sequence[tuple[GraphShard, int]]
"""Proteins of a batch: the shard of each, and its place in the shard."""


def collate_members(
    members: Members, levels: Mapping[str, str], attributes: Sequence[str], shifted: Collection[str]
) -> Batch:
    """Collate proteins to a batch with the fields of ``levels``; numbers of nodes in ``shifted`` fields are shifted."""
    spans = {level: _spans(members, level) for level in {"node", *levels.values()}}
    counts: dict[str, list[int]] = {}
    for level, spans_of_level in spans.items():
        counts[level] = [stop - start for start, stop in spans_of_level]
    first_nodes = [*accumulate(counts["node"], initial=0)]
    plain = _plain(members, attributes)
    tensors: dict[str, Tensor] = {}
    for key, level in levels.items():
        if key == "edge_index":
            tensors[key] = join_edge_index(members, counts[level], first_nodes)
            continue
        arrays = []
        for (shard, _), (start, stop) in zip(members, spans[level], strict=True):
            arrays.append(shard.arrays[key][start:stop])
        joined = np.concatenate(arrays)
        if key in shifted:
            shift = np.repeat(_shifts(members, key, plain), counts[level], axis=0)  # (M, 1), or (M, 2)
            axes = [len(joined), shift.shape[1], 1, 1]
            joined += shift.reshape(axes[: joined.ndim])
        if edge_set_of(key) is not None:
            joined = joined.T.astype(np.int64, order="C")  # (2, E)
        tensors[key] = torch.from_numpy(joined)
    rows = {key: counts[level] for key, level in levels.items()}
    return make_batch(tensors, sizes=counts["node"], rows=rows, attributes=plain)


def _spans(members: Members, level: str) -> list[tuple[int, int]]:
    """Return the first row of each protein at a level, and the row after its last."""
    return [(shard.offsets[level][i], shard.offsets[level][i + 1]) for shard, i in members]


def _shifts(members: Members, key: str, attributes: Mapping[str, list[Any]]) -> np.ndarray:
    """Return what is added to the node numbers of each protein, ``(B, 1)``, or ``(B, 2)`` for the ends of edges."""
    edges = edge_set_of(key)
    ends = () if edges is None else edge_ends(attributes, edges)
    counts: dict[str, list[int]] = {}
    for nodes in {NODES, *ends}:
        level = "node" if nodes == NODES else nodes
        counts[nodes] = [stop - start for start, stop in _spans(members, level)]
    return node_shifts(counts, ends).numpy().reshape(len(members), -1)


def _plain(members: Members, attributes: Sequence[str]) -> dict[str, list[Any]]:
    """Return the attributes that are not numeric fields, one value per protein."""
    plain: dict[str, list[Any]] = {"degree": [shard.degrees[i] for shard, i in members]}
    for key in attributes:
        plain[key] = [shard.attribute(key, i) for shard, i in members]
    return plain


def join_edge_index(members: Members, counts: Sequence[int], first_nodes: Sequence[int]) -> Tensor:
    """Return the edges of a batch, ``(2, E)`` int64, from the edges and the first node of each protein."""
    edge_index = torch.empty(2, sum(counts), dtype=torch.int64)
    rows = edge_index.numpy()
    degrees = {shard.degrees[i] for shard, i in members}
    degree = degrees.pop() if len(degrees) == 1 else None
    if degree and all(EDGES[1] not in shard.arrays for shard, _ in members):
        rows[1].reshape(-1, degree)[:] = np.arange(first_nodes[-1])[:, None]  # (N, K)
        joined: tuple[str, ...] = EDGES[:1]
    else:
        joined = EDGES
    for row, name in zip(rows, joined, strict=False):
        np.concatenate([shard.edges(name, i) for shard, i in members], out=row)
        row += np.repeat(first_nodes[:-1], counts)
    return edge_index


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
