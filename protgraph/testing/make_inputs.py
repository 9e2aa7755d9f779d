"""Make the inputs of a component from its declared fields: featurizers compute known fields, others are random."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any
from zlib import crc32

import torch
from torch import Tensor

from protgraph import registry
from protgraph.data.graph.fields import FieldSpec, Level, edge_set_of, field, field_owner, is_registered, node_sets_of
from protgraph.data.graph.protein_graph import ProteinGraph, collate
from protgraph.errors import FieldError, ProtgraphError
from protgraph.featurize import EdgeFeaturizer, Featurizer
from protgraph.featurize.plan import ALWAYS, ATOM_FIELDS, FeaturePlan, inputs
from protgraph.ops.edges import edge_ends
from protgraph.registry import BUILT_IN
from protgraph.registry.component import ComponentSpec
from protgraph.structure import Residues
from protgraph.testing.protein_fixtures import (
    copy_residues,
    degenerate_proteins,
    large_protein,
    proteins,
    with_ligands,
)
from protgraph.testing.tensor_inputs import TensorInputs

__all__ = [
    "default_spec",
    "degenerate_inputs",
    "inputs_of_batch",
    "is_pseudoscalar",
    "large_inputs",
    "level_of",
    "make_inputs",
]

#: Neighbors of each node of regular inputs: fewer than the smallest protein has, so that all nodes have equally many.
NEIGHBORS = 6
_HUB = 300  # neighbors of one node of a large protein
_ALL = 1000  # neighbors, more than a test protein has
#: Neighbors of the nodes of one protein and of the next one, repeated along its nodes; None: all other nodes. The
#: largest number differs between the proteins.
_DEGREES = ((6, 2, None, 0, 1), (2, 1, 0, 2))


def level_of(name: str) -> Level:
    """Return the level of an unregistered field from the first word of its name; "node" by default."""
    levels: tuple[Level, ...] = ("edge", "graph", "pair")
    return next((level for level in levels if name.startswith(level)), "node")


def default_spec(name: str) -> FieldSpec:
    """Return the spec of a registered field, with the width that its featurizer writes by default."""
    return _plan(frozenset([name])).fields.get(name, field(name))


def is_pseudoscalar(spec: FieldSpec) -> bool:
    """Return True for scalars that reflections change: with odd parity, or chiral."""
    return spec.is_tensor and spec.is_scalar and (spec.chiral or "o" in spec.irreps)


def make_inputs(
    specs: Mapping[str, FieldSpec],
    *,
    of: Sequence[Residues] | None = None,
    nonnegative: Iterable[str] = (),
    is_regular: bool = False,
) -> TensorInputs:
    """Make tensors of these specs, in float64.

    Nodes are residues, or backbone atoms if a field of atoms such as ``residue`` is among the specs. A registered field
    holds what its featurizer computes; any other is random, in (0.1, 1.1) if it is among ``nonnegative``. Nodes have 0,
    1, 2, some or all neighbors, as in a radius graph; if ``is_regular``, equally many, and the number is stated.
    """
    plan, nonnegative = _plan_of(specs, is_regular=is_regular), frozenset(nonnegative)
    residues = proteins(ligands=plan.needs_ligands) if of is None else of
    graphs = [plan.precompute(copy_residues(r)) for r in residues]
    if not is_regular:
        graphs = [_with_degrees(graph, _DEGREES[i % len(_DEGREES)]) for i, graph in enumerate(graphs)]
    return _inputs_of_graphs(specs, plan, graphs, nonnegative)


def large_inputs(
    specs: Mapping[str, FieldSpec], nonnegative: Iterable[str], residues: int, proteins: int, has_hub: bool
) -> TensorInputs:
    """Make tensors of proteins of many residues with 6 neighbors each, and a hub of 300 neighbors if asked for."""
    plan = _plan_of(specs)
    protein = large_protein(residues)
    if plan.needs_ligands:
        protein = with_ligands(protein, 9, seed=0)
    graph = plan.precompute(protein)
    graphs = [_with_hub(graph) if has_hub else graph] * proteins
    return _inputs_of_graphs(specs, plan, graphs, frozenset(nonnegative))


def _with_hub(graph: ProteinGraph) -> ProteinGraph:
    """Join the node in the middle to 300 others, in the order of their numbers."""
    hub, count = graph.num_nodes // 2, min(_HUB, graph.num_nodes - 1)
    sources = torch.arange(graph.num_nodes)
    sources = sources[sources != hub][:count]
    source, target = graph.edge_index
    is_before, is_behind = target < hub, target > hub
    source = torch.cat([source[is_before], sources, source[is_behind]])
    target = torch.cat([target[is_before], torch.full_like(sources, hub), target[is_behind]])
    graph.edge_index = torch.stack([source, target])
    if "degree" in graph:
        del graph.degree
    return graph


def _inputs_of_graphs(
    specs: Mapping[str, FieldSpec], plan: FeaturePlan, graphs: list[ProteinGraph], nonnegative: frozenset[str]
) -> TensorInputs:
    batch = collate(graphs)
    computed = plan.expand(inputs(batch))
    computed["masked"] = _random("masked", field("masked"), len(batch.masked), batch.pos, False)
    sizes, edge_index = batch.sizes, batch.edge_index
    rows = {"node": sum(sizes), "edge": edge_index.size(1), "graph": len(sizes)}
    rows["pair"] = sum(n * n for n in sizes)
    values: dict[str, Tensor] = {}
    for name, spec in _without_edges(specs).items():
        if spec.irreps == "index":
            values[name] = _nodes_of_protein(name, spec, sizes)
        elif _has_shape(computed.get(name), spec):
            values[name] = _double(computed[name])
        else:
            values[name] = _random(name, spec, rows[spec.level], computed["pos"], name in nonnegative)
    degree = batch.degree if "degree" in batch else None
    return TensorInputs(dict(specs), values, edge_index, sizes, degree, nonnegative)


def _without_edges(specs: Mapping[str, FieldSpec]) -> dict[str, FieldSpec]:
    return {name: spec for name, spec in specs.items() if spec.is_tensor and edge_set_of(name) is None}


def _has_shape(value: Tensor | None, spec: FieldSpec) -> bool:
    """Return True if a computed field has the trailing shape of a spec."""
    return value is not None and value.shape[1:] == spec.trailing_shape


def _nodes_of_protein(name: str, spec: FieldSpec, sizes: Sequence[int]) -> Tensor:
    """Return random node numbers ``(N, …)`` int64, those of each protein for its own nodes."""
    if spec.level != "node":
        raise FieldError(f"field {name!r} has node numbers per {spec.level}. The suite makes them per node only.")
    generator = torch.Generator().manual_seed(crc32(name.encode()))
    numbers, first = [], 0
    for size in sizes:
        numbers.append(first + torch.randint(size, (size, *spec.trailing_shape), generator=generator))
        first += size
    return torch.cat(numbers)


def _with_degrees(graph: ProteinGraph, degrees: Sequence[int | None]) -> ProteinGraph:
    """Keep the nearest neighbors of each node: as many as stated, repeated along the nodes; None: all."""
    target = graph.edge_index[1]
    count = torch.bincount(target, minlength=graph.num_nodes)
    rank = torch.arange(len(target)) - (count.cumsum(0) - count)[target]  # of the edge among those of its target
    limit = torch.tensor([graph.num_nodes if d is None else d for d in degrees])
    graph.edge_index = graph.edge_index[:, rank < limit[target % len(degrees)]]
    if "degree" in graph:
        del graph.degree
    return graph


def degenerate_inputs(specs: Mapping[str, FieldSpec], *, nonnegative: Iterable[str] = ()) -> dict[str, TensorInputs]:
    """Make inputs on which formulas divide by zero, by description."""
    ligands = _plan_of(specs).needs_ligands
    degenerate = degenerate_proteins(ligands=ligands)
    cases = {n: make_inputs(specs, of=[r], nonnegative=nonnegative) for n, r in degenerate.items()}
    usual = make_inputs(specs, nonnegative=nonnegative)
    cases["no edges"] = usual.without_edges()
    blank = {n: torch.zeros_like(x) if x.is_floating_point() else x for n, x in usual.values.items() if n != "pos"}
    cases["all features 0"] = replace(usual, values={**usual.values, **blank})
    pair = [degenerate["one residue"], proteins(ligands=ligands)[1]]
    cases["one residue beside a protein"] = make_inputs(specs, of=pair, nonnegative=nonnegative)
    return cases


def inputs_of_batch(batch: Any) -> TensorInputs:
    """Return the precomputed fields of a batch as inputs of a model."""
    more_nodes = {nodes: batch[f"{nodes}_sizes"] for nodes in node_sets_of(batch.keys())}
    left_out = {"batch", "ptr", *(f"{nodes}_batch" for nodes in more_nodes)}
    edge_sets: dict[str, Tensor] = {}
    values: dict[str, Tensor] = {}
    for name, value in batch.items():
        if name in left_out or not torch.is_tensor(value):
            continue
        edges = edge_set_of(name)
        if edges is None:
            values[name] = _double(value)
        else:
            edge_sets[edges] = value
    specs = {name: field(name) for name in values}
    specs |= {edges: field("edges").as_(edges) for edges in edge_sets}
    index = edge_sets.pop("edges", torch.zeros(2, 0, dtype=torch.long))
    degree = batch.degree if "degree" in batch else None
    ends = {edges: edge_ends(batch, edges) for edges in edge_sets if f"{edges}_ends" in batch}
    tensor_inputs = TensorInputs(specs, values, index, batch.sizes, degree, is_batch=True)
    return replace(tensor_inputs, more_edges=edge_sets, more_nodes=more_nodes, ends=ends)


def _random(name: str, spec: FieldSpec, rows: int, pos: Tensor, nonnegative: bool) -> Tensor:
    g = torch.Generator().manual_seed(crc32(name.encode()))
    shape = (rows, *spec.trailing_shape)
    if spec.dtype == "bool":
        return torch.rand(shape, generator=g) < 0.5
    if not spec.dtype.startswith("float"):
        return torch.randint(0, spec.classes or 8, shape, generator=g)
    if nonnegative:
        return 0.1 + torch.rand(shape, generator=g, dtype=torch.float64)
    value = torch.randn(shape, generator=g, dtype=torch.float64)
    if spec.irreps == "point":  # around the node of the row, else around the center of all
        center = pos.double() if spec.level == "node" else pos.double().mean(0).expand(rows, 3)
        return value + center.view(rows, *[1] * (len(shape) - 2), 3)
    return value


def _double(value: Tensor) -> Tensor:
    return value.double() if value.is_floating_point() else value


def _plan_of(specs: Mapping[str, FieldSpec], *, is_regular: bool = True) -> FeaturePlan:
    """Return the featurizers that write the registered fields among these names."""
    return _plan(frozenset(name for name in specs if is_registered(name)), is_regular=is_regular)


def _plan(names: frozenset[str], *, is_regular: bool = True) -> FeaturePlan:
    """Return the featurizers, with default options, that write these fields and those that they read."""
    ordered: dict[str, None] = {}

    def need(name: str) -> None:
        if name in (*ALWAYS, *ATOM_FIELDS, "edges", "edge_index", "proteins"):
            return
        writer = _writer(name)
        if writer is None or writer in ordered:
            return
        for read in registry.featurizers.get(writer).reads:
            need(read)
        ordered[writer] = None

    for name in sorted(names):
        need(name)
    node_type = "backbone" if names & set(ATOM_FIELDS) else "residue"
    neighbors = NEIGHBORS if is_regular else _ALL
    return FeaturePlan([ComponentSpec("knn", {"k": neighbors}), *ordered], node_type=node_type)


def _writer(name: str) -> str | None:
    """Return the first featurizer that writes a field: of protgraph, else of the distribution that registers it.

    Featurizers of other distributions are not imported: they could end the process.
    """
    built_in = _built_in_writers().get(name)
    if built_in is not None or not is_registered(name):
        return built_in
    package = field_owner(name).partition(".")[0]
    components = (r.entry(one) for r in registry.registries.values() for one in r)
    owners = {entry.distribution for entry in components if package and package == re.split("[.:]", entry.object)[0]}
    return _writers((*sorted(owners - {BUILT_IN}), "")).get(name)  # "": of this session


@cache
def _built_in_writers() -> dict[str, str]:
    return _writers((BUILT_IN,))


def _writers(distributions: tuple[str, ...]) -> dict[str, str]:
    """Map each field to the first featurizer of these distributions that writes it, without those that do not load."""
    writers: dict[str, str] = {}
    for name in registry.featurizers:
        if registry.featurizers.entry(name).distribution not in distributions:
            continue
        try:
            component = registry.featurizers.get(name)
        except ProtgraphError:
            continue
        is_featurizer = isinstance(component, type) and issubclass(component, Featurizer)
        if is_featurizer and not issubclass(component, EdgeFeaturizer):
            for written in component.writes:
                writers.setdefault(written, name)
    return writers
