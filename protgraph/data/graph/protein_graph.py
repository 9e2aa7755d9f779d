"""One protein as a graph, and several as a batch: PyG's ``Data`` with the field table in place of its guesses.

PyG decides from a tensor's *name* whether batching shifts it, and from its *length* whether it counts nodes.
Both go wrong on proteins; here the field table answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from protgraph.data.graph.fields import field, is_registered
from protgraph.errors import FieldError, UnknownNameError
from protgraph.ops import check_edges

__all__ = ["ProteinGraph", "collate", "fill", "make_batch", "shared_fields"]

_NOT_FIELDS = ("y", "ptr", "batch")


class ProteinGraph(Data):
    """The graph of one protein: registered fields as tensors, and a few plain attributes.

    Attributes
    ----------
    pos : Tensor
        ``(N, 3)`` float32, Å. Every other tensor is a field of the table, under its name.
    y : Tensor, optional
        Labels; what its rows count is ``y_level`` ("node", "edge", "graph" or "pair").
    name : str
        Name of the protein.
    residue_ids : ndarray of str
        ``(N,)`` identities such as ``"A:42"`` or ``"H:100B"`` (chain, number, insertion code).
    degree : int, only where constant
        K where every node has exactly K incoming edges.
    report : dict
        What was left out of the structure, as :meth:`protgraph.structure.LossReport.to_dict` gives it.
    """

    def __inc__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> int:
        if is_registered(key) and field(key).irreps == "index":
            return self.num_nodes
        return 0

    def __cat_dim__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> int | None:
        if not isinstance(value, Tensor):
            return None
        return 1 if key == "edge_index" else 0

    def level(self, key: str) -> str | None:
        """What the rows of a tensor count: "node", "edge", "graph", "pair", or None for a plain attribute."""
        if not isinstance(self[key], Tensor):
            return None
        if key == "y":
            return self.y_level if "y_level" in self else None
        if key == "ptr":
            return None
        return field(key).level

    def is_node_attr(self, key: str) -> bool:
        return key in self and self.level(key) == "node"

    def is_edge_attr(self, key: str) -> bool:
        return key in self and self.level(key) == "edge"

    def validate(self, raise_on_error: bool = True) -> bool:
        """Check every tensor against the field table: name, rows, trailing shape, dtype, finiteness, edge order.

        Raises
        ------
        FieldError
            Naming the field, the protein and the first row at fault.
        UnknownNameError
            A tensor is no field of the table.
        """
        try:
            for key, value in self.items():
                if isinstance(value, Tensor) and key not in _NOT_FIELDS:
                    _check_field(self, key, value)
            if "edge_index" in self:
                check_edges(self)
        except (FieldError, UnknownNameError):
            if raise_on_error:
                raise
            return False
        return True


def _check_field(graph: ProteinGraph, key: str, value: Tensor) -> None:
    spec, where = field(key), f"field {key!r} of {graph.name if 'name' in graph else 'a graph'!r}"
    if key == "edge_index":
        return
    rows = {"node": graph.num_nodes, "edge": graph.num_edges, "graph": getattr(graph, "num_graphs", 1)}
    rows["pair"] = sum(n * n for n in (graph.sizes if "sizes" in graph else [graph.num_nodes]))
    if value.size(0) != rows[spec.level]:
        raise FieldError(f"{where} has {value.size(0)} rows; a {spec.level} field here has {rows[spec.level]}")
    floating = value.is_floating_point()
    if floating != spec.dtype.startswith("float") or (not floating and value.dtype != getattr(torch, spec.dtype)):
        raise FieldError(f"{where} is {value.dtype}; the field table says {spec.dtype}")
    fixed = spec.shape if spec.irreps != "point" else spec.trailing_shape  # widths of plain irreps are options
    if fixed is not None and not _fits(tuple(value.shape[1:]), fixed):
        raise FieldError(f"{where} has trailing shape {tuple(value.shape[1:])}; the field table says {fixed}")
    finite = torch.isfinite(value).flatten(1).all(1) if floating and key != "backbone" else None
    if key == "pos" and "backbone_mask" in graph:
        finite |= ~graph.backbone_mask.any(1)  # a protein that is only a sequence
    if finite is not None and not bool(finite.all()):
        row = int((~finite).nonzero()[0])
        raise FieldError(f"{where} is not finite in row {row}; mask what is missing instead")


def _fits(shape: tuple[int, ...], fixed: tuple[int | None, ...]) -> bool:
    """Whether a trailing shape is the table's, where that says one."""
    return len(shape) == len(fixed) and all(b in (None, a) for a, b in zip(shape, fixed, strict=True))


def collate(graphs: Sequence[ProteinGraph]) -> Batch:
    """Join proteins to one batch; same values as PyG's ``Batch.from_data_list``, without its guesses.

    Adds ``batch`` ``(N,)``, ``ptr`` ``(B + 1,)``, ``sizes`` (nodes of each protein, on the host) and ``degree``
    (where all proteins share one) or ``max_degree`` (the largest there is).

    Raises
    ------
    FieldError
        There is no graph, they differ in fields, or edges are not in the order of targets.
    """
    if not graphs:
        raise FieldError("an empty list of graphs makes no batch")
    sizes = tuple(g.num_nodes for g in graphs)
    starts = [*accumulate(sizes, initial=0)]
    tensors: dict[str, Tensor] = {}
    attributes: dict[str, list[Any]] = {"degree": [g.get("degree") for g in graphs]}
    rows: dict[str, list[int]] = {}
    for key in shared_fields(graphs):
        values = [g[key] for g in graphs]
        if not isinstance(values[0], Tensor):
            attributes[key] = values
            continue
        dim = graphs[0].__cat_dim__(key, values[0])
        rows[key] = [v.size(dim) for v in values]
        if is_registered(key) and field(key).irreps == "index":
            values = [v + start for v, start in zip(values, starts, strict=False)]
        tensors[key] = torch.cat(values, dim)
    batch = make_batch(tensors, sizes=sizes, rows=rows, attributes=attributes)
    if "edge_index" in batch:
        check_edges(batch)
    return batch


def shared_fields(graphs: Sequence[ProteinGraph]) -> list[str]:
    """What all these graphs hold, sorted; without ``degree``, which a graph has only where it is constant.

    Raises
    ------
    FieldError
        One graph holds something that another does not.
    """
    first = set(graphs[0].keys()) - {"degree"}
    for g in graphs[1:]:
        if odd := first ^ (set(g.keys()) - {"degree"}):
            raise FieldError(f"graphs {graphs[0].name!r} and {g.name!r} differ in fields: {sorted(odd)}")
    return sorted(first)  # PyG gives them in an order that changes from process to process


def make_batch(
    tensors: Mapping[str, Tensor],
    *,
    sizes: Sequence[int],
    rows: Mapping[str, Sequence[int]],
    attributes: Mapping[str, Sequence[Any]],
) -> Batch:
    """A batch from tensors that are already joined and shifted.

    Parameters
    ----------
    tensors : mapping of str to Tensor
        Fields of all proteins, joined; node numbers already shifted.
    sizes : sequence of int
        Nodes of each protein.
    rows : mapping of str to sequence of int
        For each tensor, how many of its rows each protein gave.
    attributes : mapping of str to sequence
        Plain attributes, one value a protein (``name``, ``residue_ids``, ``degree``, …).
    """
    ptr = torch.tensor([*accumulate(sizes, initial=0)])
    starts, unshifted = ptr[:-1], torch.zeros(len(sizes), dtype=torch.long)
    one_each = torch.arange(len(sizes) + 1)
    pointer: dict[tuple[int, ...], Tensor] = {}  # fields of one level share theirs
    slices: dict[str, Tensor] = {}
    shifts: dict[str, Tensor | None] = {}
    values: dict[str, Any] = dict(tensors)
    for key in tensors:
        counts = tuple(rows[key])
        if counts not in pointer:
            pointer[counts] = torch.tensor([*accumulate(counts, initial=0)])
        slices[key] = pointer[counts]
        shifts[key] = starts if is_registered(key) and field(key).irreps == "index" else unshifted
    for key, given in attributes.items():
        if key not in ("degree", "y_level"):
            values[key], slices[key], shifts[key] = list(given), one_each, None
        elif given[0] is not None and all(v == given[0] for v in given):
            values[key] = given[0]
    values["sizes"] = tuple(int(s) for s in sizes)
    if "edge_index" in tensors and "degree" not in values:
        targets = tensors["edge_index"][1]
        values["max_degree"] = int(targets.bincount().max()) if len(targets) else 0
    values["batch"] = torch.from_numpy(np.repeat(np.arange(len(sizes)), sizes))
    values["ptr"] = ptr
    batch = type.__call__(_BATCH)  # PyG's metaclass makes a class at every call, 50 µs
    fill(batch, values)
    batch._num_graphs = len(sizes)
    batch._slice_dict, batch._inc_dict = slices, shifts
    return batch


def fill(graph: Data, values: Mapping[str, Any]) -> None:
    """Set fields and attributes, none of them None, as ``graph[key] = value`` does in 3 µs a key."""
    graph._store._mapping.update(values)


_BATCH = type(Batch(_base_cls=ProteinGraph))
