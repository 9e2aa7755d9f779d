"""Protein graphs and batches: PyG's ``Data`` and ``Batch`` with the field table instead of naming heuristics.

PyG infers from the *name* of a tensor whether batching shifts it, and from its *length* whether its rows are nodes.
Both heuristics fail for proteins (e.g. a protein with as many edges as nodes); the field table has the exact answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from protgraph.argument_types import check_arguments
from protgraph.data.graph.fields import (
    EDGES,
    NODES,
    FieldSpec,
    edge_index_name,
    edge_set_of,
    field,
    is_node_set,
    is_registered,
    node_sets_of,
)
from protgraph.data.graph.levels import prefixed
from protgraph.errors import FieldError, UnknownNameError, WiringError
from protgraph.ops import check_edges
from protgraph.ops.edges import count_nodes, edge_ends
from protgraph.wording import count_noun, html_table

if TYPE_CHECKING:
    from protgraph.data.datasets.target import Target

__all__ = [
    "CA",
    "LossCounts",
    "ProteinGraph",
    "collate",
    "labels_on_nodes",
    "make_batch",
    "node_shifts",
    "residue_nodes",
    "set_attributes",
    "shared_fields",
]

_NOT_FIELDS = ("y", "ptr", "batch")


class LossCounts:
    """Loss report of a graph as plain data, read like a dict: ``graph.report["waters"]``.

    Not a dict: PyG's batching joins dicts key by key, and the reports of two files have different keys (PyG 2.8.1,
    2026-11-26). Of other objects it makes a list.

    ``counts``: result of :meth:`protgraph.structure.LossReport.to_dict`.

    Examples
    --------
    >>> LossCounts({"waters": 3})["waters"], LossCounts({}) == {}
    (3, True)
    """

    def __init__(self, counts: Mapping[str, Any]) -> None:
        self._counts = dict(counts)

    def __getitem__(self, name: str) -> Any:
        return self._counts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def __eq__(self, other: object) -> bool:
        return self._counts == (other._counts if isinstance(other, LossCounts) else other)

    def __repr__(self) -> str:
        return repr(self._counts)

    def get(self, name: str, default: Any = None) -> Any:
        """Return an entry, or the default."""
        return self._counts.get(name, default)

    def keys(self) -> Iterable[str]:
        """Return the names of the entries."""
        return self._counts.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return the entries."""
        return self._counts.items()

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of the entries."""
        return dict(self._counts)


class ProteinGraph(Data):
    """Graph of one protein: tensors, which are fields of the field table, and plain attributes.

    Attributes
    ----------
    pos : Tensor
        ``(N, 3)`` float32, Å. All other tensors are fields of the table, under their names.
    y : Tensor, optional
        Labels, with rows per ``y_level`` ("node", "edge", "graph" or "pair").
    name : str
        Name of the protein.
    residue_ids : ndarray of str
        ``(N,)`` residue identifiers such as ``"A:42"`` or ``"H:100B"`` (chain, number, insertion code).
    degree : int
        Incoming edges per node, K; only present if all nodes have the same number.
    report : LossCounts
        Loss report of the structure; see :meth:`protgraph.structure.LossReport.to_dict`.
    """

    # PyG declares these as optional.
    edge_index: Tensor  # type: ignore[assignment]
    edge_attr: Tensor  # type: ignore[assignment]
    pos: Tensor  # type: ignore[assignment]
    x: Tensor  # type: ignore[assignment]
    y: Tensor  # type: ignore[assignment]
    name: str
    split: str

    def __contains__(self, key: str) -> bool:
        return key in self._store._mapping  # PyG makes a list of all names

    def _repr_html_(self) -> str:
        """Return the fields with shape, level, irreps and unit as a table, for notebooks."""
        rows = []
        for key, value in self.items():
            if isinstance(value, Tensor):
                spec = field(key) if is_registered(key) else None
                known = (spec.level, spec.irreps, spec.unit, spec.doc) if spec else ("", "", "", "")
                rows.append((key, str(tuple(value.shape)), str(value.dtype).removeprefix("torch."), *known))
        name = self.name if "name" in self else "graph"
        edges = f", {count_noun(self.num_edges, 'edge')}" if "edge_index" in self else ""
        title = f"{name}: {count_noun(self.num_nodes, 'node')}{edges}"
        return html_table(title, ["field", "shape", "dtype", "level", "irreps", "unit", "content"], rows)

    @property
    def num_nodes(self) -> int:
        """Number of rows of ``pos``; PyG infers the number for graphs without positions, and 0 without fields."""
        fields = self._store._mapping
        pos = None if "num_nodes" in fields else fields.get("pos")
        return len(pos) if isinstance(pos, Tensor) else self._store.num_nodes or 0

    @num_nodes.setter
    def num_nodes(self, value: int | None) -> None:
        self._store.num_nodes = value

    def __inc__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> int | Tensor:
        if not is_registered(key) or field(key).irreps != "index":
            return 0
        edges = edge_set_of(key)
        if edges is None or edge_ends(self, edges) == (NODES, NODES):
            return self.num_nodes
        return torch.tensor([[count_nodes(self, nodes)] for nodes in edge_ends(self, edges)])  # (2, 1)

    def __cat_dim__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> int | None:
        if not isinstance(value, Tensor):
            return None
        return 0 if edge_set_of(key) is None else 1

    def level(self, key: str) -> str | None:
        """Return the level of a tensor, "node", "edge", "graph" or "pair"; None for plain attributes.

        For a field on a named set, e.g. ``far_edge_dist`` or ``residues_pos``, it is the name of the set.
        """
        if not isinstance(self[key], Tensor):
            return None
        if key == "y":
            level = self.get("y_level")
            return level[0] if isinstance(level, list) else level  # PyG's batching makes a list
        if key == "ptr":
            return None
        return field(key).rows

    def is_node_attr(self, key: str) -> bool:
        """Check if an attribute is a tensor with one row per node."""
        return key in self and self.level(key) == "node"

    def is_edge_attr(self, key: str) -> bool:
        """Check if an attribute is a tensor with one row per edge."""
        return key in self and self.level(key) == "edge"

    def validate(self, raise_on_error: bool = True) -> bool:
        """Check all tensors against the field table: name, rows, trailing shape, dtype, finite values, edge order.

        Raises
        ------
        FieldError
            If a check fails; with the field, the protein and the first invalid row.
        UnknownNameError
            If a tensor is not a field of the table.
        """
        try:
            for key, value in self.items():
                if isinstance(value, Tensor) and key not in _NOT_FIELDS:
                    _check_field(self, key, value)
            for edges in _edge_sets(self):
                check_edges(self, edges)
        except (FieldError, UnknownNameError):
            if raise_on_error:
                raise
            return False
        return True


def _edge_sets(graph: Data) -> list[str]:
    """Return the names of the edge sets of a graph or batch."""
    names = (edge_set_of(key) for key in graph.keys())  # noqa: SIM118
    return [name for name in names if name is not None]


def _check_field(graph: ProteinGraph, key: str, value: Tensor) -> None:
    if edge_set_of(key) is not None:
        return
    spec, where = field(key), f"field {key!r} of {graph.name if 'name' in graph else 'a graph'!r}"
    rows = _count_rows(graph, spec)
    if rows is None:
        raise FieldError(f"{where} is on the {spec.level}s {spec.on!r}, which the graph does not have.")
    if value.size(0) != rows:
        raise FieldError(f"{where} has {value.size(0)} rows. {spec.rows} fields of it have {rows}.")
    is_float = spec.dtype.startswith("float")  # of any precision
    has_dtype = value.is_floating_point() if is_float else value.dtype == getattr(torch, spec.dtype)
    if not has_dtype:
        raise FieldError(f"{where} is {value.dtype}. The field table has {spec.dtype}.")
    fixed = spec.shape if spec.irreps != "point" else spec.trailing_shape  # plain irreps: width is an option
    if fixed is not None and not _fits(tuple(value.shape[1:]), fixed):
        raise FieldError(f"{where} has trailing shape {tuple(value.shape[1:])}. The field table has {fixed}.")
    if is_float and key.removeprefix(f"{spec.on}_") != "backbone":
        _check_finite(graph, key, value, where)


def _count_rows(graph: ProteinGraph, spec: FieldSpec) -> int | None:
    """Return the number of rows of a field; None if it is on a set that the graph does not have."""
    if spec.rows == "node":
        return graph.num_nodes
    if spec.rows == "edge":
        return graph.num_edges
    if spec.rows == "graph":
        return getattr(graph, "num_graphs", 1)
    if spec.rows == "pair":
        sizes = graph.sizes if "sizes" in graph else [graph.num_nodes]
        return sum(n * n for n in sizes)
    if is_node_set(spec.rows):
        return count_nodes(graph, spec.rows) if prefixed(spec.rows, "pos") in graph else None
    index = edge_index_name(spec.rows)
    return graph[index].size(1) if index in graph else None


def _check_finite(graph: ProteinGraph, key: str, value: Tensor, where: str) -> None:
    finite = torch.isfinite(value).flatten(1).all(1)
    if key == "pos" and "backbone_mask" in graph:
        finite |= ~graph.backbone_mask.any(1)  # residues without coordinates
    if not bool(finite.all()):
        row = int((~finite).nonzero()[0])
        raise FieldError(f"{where} is not finite in row {row}. Replace missing values by 0 and use a mask field.")


def _fits(shape: tuple[int, ...], fixed: tuple[int | None, ...]) -> bool:
    """Compare a trailing shape with the shape in the table, where None matches any width."""
    return len(shape) == len(fixed) and all(b in (None, a) for a, b in zip(shape, fixed, strict=True))


@check_arguments("graphs")
def collate(graphs: Sequence[ProteinGraph]) -> Batch:
    """Collate graphs to a batch.

    Adds ``batch`` ``(N,)``, ``ptr`` ``(B + 1,)``, ``sizes`` (nodes per protein, on the host) and either ``degree`` (if
    all proteins have the same) or ``max_degree``; for each node set ``residues_batch`` and ``residues_sizes``.

    Not PyG's ``Batch.from_data_list``: same values, but shifts follow the field table and ``sizes`` and ``max_degree``
    save synchronizations with the device (PyG 2.8.1, 2026-11-22).

    Raises
    ------
    FieldError
        If the list is empty, the graphs differ in fields, or edges are not sorted by target.
    """
    if not graphs:
        raise FieldError("cannot collate an empty list of graphs")
    sizes = tuple(g.num_nodes for g in graphs)
    tensors: dict[str, Tensor] = {}
    attributes: dict[str, list[Any]] = {"degree": [g.get("degree") for g in graphs]}
    rows: dict[str, list[int]] = {}
    for key in shared_fields(graphs):
        values = [g[key] for g in graphs]
        if not isinstance(values[0], Tensor):
            attributes[key] = values
            continue
        values = [torch.atleast_1d(value) for value in values]
        dim = graphs[0].__cat_dim__(key, values[0])
        assert dim is not None  # of a tensor
        rows[key] = [v.size(dim) for v in values]
        if _has_node_numbers(key):
            values = _shift_node_numbers(graphs, key, values)
        tensors[key] = torch.cat(values, dim)
    batch = make_batch(tensors, sizes=sizes, rows=rows, attributes=attributes)
    for edges in _edge_sets(batch):
        check_edges(batch, edges)
    return batch


def _has_node_numbers(key: str) -> bool:
    """Return True for fields of node numbers, which batching shifts."""
    return is_registered(key) and field(key).irreps == "index"


def _shift_node_numbers(graphs: Sequence[ProteinGraph], key: str, values: Sequence[Tensor]) -> list[Tensor]:
    """Return the node numbers of each graph in a field, e.g. its edge index, as node numbers of the batch."""
    ends = _ends_of_index(graphs[0], key)
    counts: dict[str, list[int]] = {}
    for nodes in {NODES, *ends}:
        counts[nodes] = [count_nodes(g, nodes) for g in graphs]
    shifts = node_shifts(counts, ends)
    return [value + shift for value, shift in zip(values, shifts, strict=True)]


def _ends_of_index(graph: Data, key: str) -> tuple[str, ...]:
    """Return the node sets of sources and targets of an edge index; none for other fields with node numbers."""
    edges = edge_set_of(key)
    return () if edges is None else edge_ends(graph, edges)


def node_shifts(counts: Mapping[str, Sequence[int]], ends: Sequence[str]) -> Tensor:
    """Return what batching adds to the node numbers of each graph.

    ``counts``: nodes of each graph in the graph's nodes, "nodes", and in the node sets. ``ends``: node sets of sources
    and targets of an edge index; empty for other fields. Returns ``(B, 2, 1)`` int64 for edges, else ``(B,)``.
    """
    firsts = {nodes: np.cumsum([0, *sizes])[:-1] for nodes, sizes in counts.items()}  # (B,) each
    if not ends:
        return torch.from_numpy(firsts[NODES])
    return torch.from_numpy(np.stack([firsts[nodes] for nodes in ends], 1)[:, :, None])


def shared_fields(graphs: Sequence[ProteinGraph]) -> list[str]:
    """Return the sorted attribute names of graphs, without ``degree``, which not every graph has.

    Raises
    ------
    FieldError
        If the graphs differ in attributes.
    """
    first = set(graphs[0].keys()) - {"degree"}
    for g in graphs[1:]:
        if different := first ^ (set(g.keys()) - {"degree"}):
            raise FieldError(f"graphs {graphs[0].name!r} and {g.name!r} differ in fields: {sorted(different)}")
    return sorted(first)  # PyG's order differs between processes


def make_batch(
    tensors: Mapping[str, Tensor],
    *,
    sizes: Sequence[int],
    rows: Mapping[str, Sequence[int]],
    attributes: Mapping[str, Sequence[Any]],
) -> Batch:
    """Create a batch from concatenated tensors.

    Parameters
    ----------
    tensors : mapping of str to Tensor
        Fields of all proteins, concatenated to ``(M, …)`` each; node numbers already shifted.
    sizes : sequence of int
        Nodes per protein.
    rows : mapping of str to sequence of int
        Rows per protein of each tensor.
    attributes : mapping of str to sequence
        Plain attributes, one value per protein (``name``, ``residue_ids``, ``degree``, …).
    """
    values: dict[str, Any] = dict(tensors) | _join_attributes(attributes)
    one_row_each = [1] * len(sizes)
    counts: dict[str, Sequence[int]] = dict(rows)
    counts |= {key: one_row_each for key in attributes if not _is_common(key)}
    values["sizes"] = sizes = tuple(int(s) for s in sizes)
    values |= _max_degrees(
        {key: index for key, index in tensors.items() if key != "edge_index" or "degree" not in values}
    )
    values["batch"] = torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes))
    values["ptr"] = torch.from_numpy(np.array([*accumulate(sizes, initial=0)]))
    sizes_of = {NODES: sizes}
    for nodes in node_sets_of(tensors):
        sizes_of[nodes] = values[f"{nodes}_sizes"] = tuple(map(int, rows[f"{nodes}_pos"]))
        values[f"{nodes}_batch"] = torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes_of[nodes]))
    batch = type.__call__(_BATCH)  # avoids PyG's metaclass, which creates a class per call (50 µs)
    set_attributes(batch, values)
    slices, increments = _slices_and_increments(batch, counts, sizes_of)
    batch.__dict__.update(_num_graphs=len(sizes), _slice_dict=slices, _inc_dict=increments)
    return batch


def _is_common(key: str) -> bool:
    """Return True for a plain attribute of which a batch has one value, if it is that of all proteins."""
    return key in ("degree", "y_level") or key.endswith("_ends")


def _join_attributes(attributes: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Return the plain attributes of a batch: lists with a value per protein, and values that all proteins have."""
    joined: dict[str, Any] = {}
    for key, per_protein in attributes.items():
        first = per_protein[0]
        if not _is_common(key):
            joined[key] = list(per_protein)
        elif first is not None and all(value == first for value in per_protein):
            joined[key] = int(first) if key == "degree" else first
    return joined


def _max_degrees(tensors: Mapping[str, Tensor]) -> dict[str, int]:
    """Return the most incoming edges of a node in each edge set: ``max_degree``, of a named set ``far_max_degree``."""
    degrees: dict[str, int] = {}
    for key, index in tensors.items():
        edges = edge_set_of(key)
        if edges is not None:
            name = "max_degree" if edges == EDGES else f"{edges}_max_degree"
            degrees[name] = int(index[1].bincount().max()) if index.numel() else 0
    return degrees


def _slices_and_increments(
    batch: Data, counts: Mapping[str, Sequence[int]], sizes_of: Mapping[str, Sequence[int]]
) -> tuple[dict[str, np.ndarray], dict[str, Tensor | None]]:
    """Return the first row of each protein in each field, and what was added to its values: PyG separates by them.

    Rows are arrays, ``(B + 1,)``: PyG takes lists for those of its own collation.
    """
    slices: dict[str, np.ndarray] = {}
    increments: dict[str, Tensor | None] = {}
    for key, rows in counts.items():
        slices[key] = np.array([*accumulate(rows, initial=0)])
        increments[key] = node_shifts(sizes_of, _ends_of_index(batch, key)) if _has_node_numbers(key) else None
    return slices, increments


def set_attributes(graph: Data, values: Mapping[str, Any]) -> None:
    """Set fields and attributes, none of them None; equal to ``graph[key] = value``, which takes 3 µs per key."""
    graph._store._mapping.update(values)


_BATCH = type(Batch(_base_cls=ProteinGraph))


CA = 1
"""``atom_type`` of CA."""


def residue_nodes(graph: Data) -> Tensor:
    """Return the node of each residue, ``(L,)`` int64: the CA in an atom graph, the node itself in a residue graph."""
    if "atom_type" not in graph:
        device = next(value.device for value in graph.to_dict().values() if isinstance(value, Tensor))
        return torch.arange(graph.num_nodes, device=device)
    return torch.nonzero(graph.atom_type == CA).flatten()


def labels_on_nodes(y: Tensor, graph: Data, target: Target) -> Tensor:
    """Map residue labels to nodes: in an atom graph the CA has the label, other atoms are unknown (−1 or NaN).

    Parameters
    ----------
    y : Tensor
        ``(L, …)`` for a target per residue. Labels per protein are returned unchanged.
    graph : Data
        Graph of the protein.

    Returns
    -------
    Tensor
        ``(N, …)`` for the nodes of an atom graph and a target per residue; else ``y``.

    Raises
    ------
    WiringError
        If the target is per pair or per edge and the nodes are atoms.
    """
    if "atom_type" not in graph or target.level == "graph":
        return y
    if target.level != "node":
        raise WiringError(
            f"target {target.name!r} is per {target.level}. Atom graphs allow targets per residue and per protein."
        )
    node_labels = y.new_full((graph.num_nodes, *y.shape[1:]), torch.nan if y.is_floating_point() else -1)
    node_labels[residue_nodes(graph)] = y
    return node_labels
