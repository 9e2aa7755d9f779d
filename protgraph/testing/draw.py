"""Inputs for a component, from what it says it reads: true features of fields that the table knows, random others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from zlib import crc32

import torch
from torch import Tensor

from protgraph import registry
from protgraph.data.graph.fields import FieldSpec, field, is_registered
from protgraph.data.graph.protein_graph import collate
from protgraph.errors import ProtgraphError
from protgraph.featurize import EdgeFeaturizer, Featurizer
from protgraph.featurize.plan import ALWAYS, FeaturePlan, inputs
from protgraph.registry.component import ComponentSpec
from protgraph.structure import Residues
from protgraph.testing.protein_fixtures import copied, degenerate_proteins, proteins
from protgraph.testing.scene import TensorScene

__all__ = ["degenerate_scenes", "draw_scene", "known_spec", "level_of", "plan_of", "scene_of_graph"]

#: Neighbors of each node: fewer than the smallest protein has, so that all nodes have equally many.
NEIGHBOURS = 6


def level_of(name: str) -> str:
    """What a local name counts that the table does not know: by its first word."""
    return next((level for level in ("edge", "graph", "pair") if name.startswith(level)), "node")


def known_spec(name: str) -> FieldSpec:
    """The spec of a registered field, as wide as its featurizer makes it by default."""
    return _plan(frozenset([name])).fields.get(name, field(name))


def draw_scene(
    specs: Mapping[str, FieldSpec], *, of: Sequence[Residues] | None = None, nonnegative: Iterable[str] = ()
) -> TensorScene:
    """Proteins as the tensors of these specs, in float64.

    Parameters
    ----------
    specs : mapping of str to FieldSpec
        By local name. A name of the field table holds what its featurizer computes; any other is drawn at random.
    of : sequence of Residues, optional
        The proteins; :func:`protgraph.testing.protein_fixtures.proteins` by default, with ligands where they are looked at.
    nonnegative : iterable of str
        Names to draw from (0.1, 1.1).
    """
    plan, nonnegative = plan_of(specs), frozenset(nonnegative)
    residues = proteins(ligands=plan.wants_ligands) if of is None else of
    batch = collate([plan.precompute(copied(r)) for r in residues])
    known = plan.expand(inputs(batch))
    known["masked"] = _random("masked", field("masked"), len(batch.masked), batch.pos, False)
    sizes, edge_index = batch.sizes, batch.edge_index
    rows = {"node": sum(sizes), "edge": edge_index.size(1), "graph": len(sizes)}
    rows["pair"] = sum(n * n for n in sizes)
    values: dict[str, Tensor] = {}
    for name, spec in specs.items():
        if not spec.is_tensor or spec.irreps == "index":
            continue
        if name in known and known[name].shape[1:] == spec.trailing_shape:
            values[name] = _exact(known[name])
        else:
            values[name] = _random(name, spec, rows[spec.level], known["pos"], name in nonnegative)
    degree = batch.degree if "degree" in batch else None
    return TensorScene(dict(specs), values, edge_index, sizes, degree, nonnegative)


def degenerate_scenes(specs: Mapping[str, FieldSpec], *, nonnegative: Iterable[str] = ()) -> dict[str, TensorScene]:
    """Scenes that make formulas divide by zero, by what they are."""
    bound = plan_of(specs).wants_ligands
    odd = degenerate_proteins(ligands=bound)
    made = {n: draw_scene(specs, of=[r], nonnegative=nonnegative) for n, r in odd.items()}
    usual = draw_scene(specs, nonnegative=nonnegative)
    made["no edges"] = usual.without_edges()
    blank = {n: torch.zeros_like(x) if x.is_floating_point() else x for n, x in usual.values.items() if n != "pos"}
    made["all features 0"] = replace(usual, values={**usual.values, **blank})
    pair = [odd["one residue"], proteins(ligands=bound)[1]]
    made["one residue beside a protein"] = draw_scene(specs, of=pair, nonnegative=nonnegative)
    return made


def scene_of_graph(graph: Any) -> TensorScene:
    """The stored fields of a batch as a scene."""
    values = {n: _exact(x) for n, x in graph.items() if n not in ("edge_index", "batch", "ptr") and torch.is_tensor(x)}
    specs = {name: field(name) for name in values}
    if "edge_index" not in graph:
        return TensorScene(specs, values, torch.zeros(2, 0, dtype=torch.long), graph.sizes)
    specs |= {"edges": field("edges")}
    return TensorScene(specs, values, graph.edge_index, graph.sizes, graph.degree if "degree" in graph else None)


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
    if spec.irreps == "point":  # around the nodes, if it is theirs
        center = pos.double() if spec.level == "node" else pos.double().mean(0).expand(rows, 3)
        return value + center.view(rows, *[1] * (len(shape) - 2), 3)
    return value


def _exact(value: Tensor) -> Tensor:
    return value.double() if value.is_floating_point() else value


def plan_of(specs: Mapping[str, FieldSpec]) -> FeaturePlan:
    """The featurizers that write those of these names that the field table knows."""
    return _plan(frozenset(name for name in specs if is_registered(name)))


def _plan(names: frozenset[str]) -> FeaturePlan:
    """The featurizers, with default options, that write these fields and whatever those read."""
    ordered: dict[str, None] = {}

    def need(name: str) -> None:
        writer = _writers().get(name)
        if name in (*ALWAYS, "edges", "edge_index", "proteins") or writer is None or writer in ordered:
            return
        for read in registry.featurizers.get(writer).reads:
            need(read)
        ordered[writer] = None

    for name in sorted(names):
        need(name)
    return FeaturePlan([ComponentSpec("knn", {"k": NEIGHBOURS}), *ordered])


def _writers() -> dict[str, str]:
    """Field → the first registered featurizer that writes it; what cannot be loaded writes nothing."""
    found: dict[str, str] = {}
    for name in registry.featurizers:
        try:
            component = registry.featurizers.get(name)
        except ProtgraphError:
            continue
        if (
            isinstance(component, type)
            and issubclass(component, Featurizer)
            and not issubclass(component, EdgeFeaturizer)
        ):
            for written in component.writes:
                found.setdefault(written, name)
    return found
