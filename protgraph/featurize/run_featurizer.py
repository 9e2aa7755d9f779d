"""Run one featurizer and check what it returns; faults name the featurizer, the protein and the line of code."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor

from protgraph.data.graph.fields import FieldSpec, field
from protgraph.featurize.base import (
    EdgeFeaturizer,
    EdgeList,
    NodeFeaturizer,
    NodeList,
    StructureFeaturizer,
    TensorFeaturizer,
)
from protgraph.ops import Edges
from protgraph.registry.component_fault import ComponentScope
from protgraph.structure.residues.atoms import NodeAtoms
from protgraph.structure.residues.residues import Residues

__all__ = [
    "check_returned_fields",
    "check_returned_tensor",
    "run_edge_featurizer",
    "run_edges_between",
    "run_node_featurizer",
    "run_structure_featurizer",
    "run_tensor_featurizer",
]


def run_structure_featurizer(name: str, featurizer: StructureFeaturizer, residues: Residues) -> dict[str, np.ndarray]:
    """Return the arrays of a structure featurizer by local name, all of the shapes of their specs."""
    with _scope(name, featurizer.__call__, residues.name) as scope:
        n = len(residues)
        return _checked_arrays(scope, featurizer(residues), featurizer.out, {"node": n, "graph": 1, "pair": n * n})


def _checked_arrays(
    scope: ComponentScope, result: object, declared: Mapping[str, FieldSpec], rows: Mapping[str, int]
) -> dict[str, np.ndarray]:
    """Return the arrays that a featurizer returned by local name, all of the shapes of their specs and finite."""
    checked = check_returned_fields(scope, result, declared)
    arrays = {local: np.asarray(value) for local, value in checked.items()}
    for local, value in arrays.items():
        spec = declared[local]
        _check_shape(scope, local, value.shape, spec.trailing_shape, spec.level, rows)
        is_float = value.dtype.kind == "f"
        if is_float != spec.dtype.startswith("float"):
            raise scope.returned(f"returns {local!r} of type {value.dtype}", allowed=f"Declared: {spec.dtype}.")
        if is_float and local != "backbone" and not np.isfinite(value).all():
            row = int(np.argwhere(~np.isfinite(value))[0, 0])
            raise scope.returned(
                f"returns {local!r} that is not finite in row {row}",
                allowed="Replace missing values by 0 and use a mask field.",
            )
    return arrays


def run_edge_featurizer(name: str, featurizer: EdgeFeaturizer, residues: Residues, nodes: NodeAtoms) -> EdgeList:
    """Return the edges between residues or, if the nodes are atoms, between atoms."""
    between_residues = nodes.node_type == "residue"
    call = featurizer.__call__ if between_residues else featurizer.among
    with _scope(name, call, residues.name) as scope:
        edges = featurizer(residues) if between_residues else featurizer.among(residues, nodes)
        return _checked_edges(scope, featurizer, edges, len(nodes), len(nodes))


def run_edges_between(
    name: str, featurizer: EdgeFeaturizer, residues: Residues, sources: NodeList, targets: NodeList
) -> EdgeList:
    """Return the edges from the nodes of one set to those of another, or of the same one."""
    with _scope(name, featurizer.between, residues.name) as scope:
        edges = featurizer.between(sources.pos, None if targets is sources else targets.pos)
        return _checked_edges(scope, featurizer, edges, len(sources.pos), len(targets.pos))


def run_node_featurizer(name: str, featurizer: NodeFeaturizer, residues: Residues) -> NodeList:
    """Return the nodes of a node set, all arrays of the shapes of their specs."""
    with _scope(name, featurizer.__call__, residues.name) as scope:
        nodes = featurizer(residues)
        if not isinstance(nodes, NodeList):
            raise scope.returned(f"returns {_describe(nodes)}", allowed="Return a NodeList(pos, residue).")
        number = len(nodes.pos)
        pos = _checked_arrays(scope, {"pos": nodes.pos}, {"pos": field("pos")}, {"node": number})["pos"]
        residue = np.asarray(nodes.residue)
        if residue.shape != (number,) or residue.dtype.kind != "i":
            raise scope.returned(
                f"returns residue {residue.dtype} {residue.shape}",
                allowed=f"Declared: ({number},) integers, one per node.",
            )
        if number and not (residue.min() >= -1 and residue.max() < len(residues)):
            raise scope.returned(
                "returns nodes of residues that do not exist",
                allowed=f"Residues: 0 to {len(residues) - 1}; -1 for none.",
            )
        declared = {local: spec for local, spec in featurizer.out.items() if local != featurizer.name}
        fields = _checked_arrays(scope, nodes.fields, declared, {"node": number})
    return NodeList(pos.astype(residues.pos.dtype, copy=False), residue, fields)


def _checked_edges(
    scope: ComponentScope, featurizer: EdgeFeaturizer, edges: object, num_sources: int, num_nodes: int
) -> EdgeList:
    """Return the edges of a featurizer, with their attributes as arrays of the shapes of their specs."""
    if not isinstance(edges, EdgeList):
        raise scope.returned(f"returns {_describe(edges)}", allowed="Return an EdgeList(source, target).")
    _check_ends(scope, edges, num_sources, num_nodes)
    declared = {local: spec for local, spec in featurizer.out.items() if local != "edge_index"}
    fields = _checked_arrays(scope, edges.fields, declared, {"edge": len(edges.source)})
    return replace(edges, fields=fields)


def _check_ends(scope: ComponentScope, edges: EdgeList, num_sources: int, num_nodes: int) -> None:
    """Raise if the ends of edges are not integers, not sorted by target, or not nodes."""
    source, target = np.asarray(edges.source), np.asarray(edges.target)
    if source.ndim != 1 or source.shape != target.shape or not source.dtype.kind == target.dtype.kind == "i":
        found = f"source {source.dtype} {source.shape} and target {target.dtype} {target.shape}"
        raise scope.returned(f"returns {found}", allowed="Both are integers of shape (E,).")
    if len(target) and (target[1:] < target[:-1]).any():
        raise scope.returned("returns edges that are not sorted by target", allowed=_ORDER)
    for ends, number in ((source, num_sources), (target, num_nodes)):
        if len(ends) and not (ends.min() >= 0 and ends.max() < number):
            raise scope.returned("returns edges of nodes that do not exist", allowed=f"Nodes: 0 to {number - 1}.")


_ORDER = "Sort them: protgraph.structure.neighbors.sort_edges(residues.pos, np.stack([source, target]))."


def run_tensor_featurizer(
    name: str, featurizer: TensorFeaturizer, f: Mapping[str, Any], rows: Mapping[str, int]
) -> dict[str, Any]:
    """Return the tensors of a tensor featurizer by local name, all of the shapes of their specs; or its line graph."""
    with _scope(name, featurizer.__call__) as scope:
        result = check_returned_fields(scope, featurizer(f), featurizer.out)
        for local, value in result.items():
            spec = featurizer.out[local]
            if not spec.is_tensor:
                if not isinstance(value, Edges):
                    raise scope.returned(f"returns {local!r} as {_describe(value)}", allowed="Return protgraph.Edges.")
                continue
            check_returned_tensor(scope, local, value, spec.trailing_shape, spec.level, rows)
    return result


def _scope(name: str, call: Callable[..., object], protein: str = "") -> ComponentScope:
    return ComponentScope("featurizer", name, call, protein=protein)


def check_returned_fields(
    scope: ComponentScope, result: object, declared: Collection[str], *, may_have_more: bool = False
) -> dict[str, Any]:
    """Return what a component returned; raise if it is not a dict of the fields that it declares."""
    allowed = f"Return a dict of the fields that it writes: {', '.join(sorted(declared))}."
    if not isinstance(result, Mapping):
        raise scope.returned(f"returns {_describe(result)}", allowed=allowed)
    has_others = bool(set(result) - set(declared)) and not may_have_more
    if has_others or set(declared) - set(result):
        raise scope.returned(f"returns the fields {', '.join(map(str, result)) or '(none)'}", allowed=allowed)
    return dict(result)


def check_returned_tensor(
    scope: ComponentScope,
    local: str,
    value: object,
    trailing: tuple[int | None, ...],
    level: str,
    rows: Mapping[str, int],
) -> None:
    """Raise if a value is not a tensor with one row per element of a level and the declared other dimensions."""
    if not isinstance(value, Tensor):
        raise scope.returned(f"returns {local!r} as {_describe(value)}", allowed="Return a tensor.")
    _check_shape(scope, local, tuple(value.shape), trailing, level, rows)


def _check_shape(
    scope: ComponentScope,
    local: str,
    shape: tuple[int, ...],
    trailing: tuple[int | None, ...],
    level: str,
    rows: Mapping[str, int],
) -> None:
    expected = (rows.get(level), *trailing)
    if len(shape) != len(expected) or any(b not in (None, a) for a, b in zip(shape, expected, strict=True)):
        text = ", ".join("any" if part is None else str(part) for part in expected)
        each = f", one row per {level}" if level != "graph" else ""
        raise scope.returned(f"returns {local!r} of shape {shape}", allowed=f"Declared: ({text}){each}.")


def _describe(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
