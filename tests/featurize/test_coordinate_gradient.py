"""Gradients with respect to coordinates equal finite differences, or an error names what they would lack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

import protgraph as pg
from protgraph.errors import GradientError
from protgraph.featurize.base import EdgeFeaturizer, NodeFeaturizer, StructureFeaturizer, TensorFeaturizer
from protgraph.featurize.coordinate_gradient import recompute_features
from protgraph.featurize.plan import ALWAYS, FeaturePlan, inputs
from protgraph.registry.component import ComponentSpec
from protgraph.structure.residues.residues import Residues
from protgraph.testing import offline_models
from protgraph.testing.protein_fixtures import make_alignment

ATOMS = ("N", "CA", "C", "O")
FEATURE_STEP = 1e-5  # Å; the relative error of the difference is at most 1e-7 here, and 1.4e-6 (rounding) at 1e-7 Å
MODEL_STEP = 1e-7  # Å; larger steps cross kinks of ReLU


@pytest.fixture(scope="module")
def residues(structures_dir) -> Residues:
    """Return a protein of two chains in double precision, without the coordinates of one O."""
    found = pg.clean(pg.load_structure(structures_dir / "1jk9.bcif")).chains(["A", "B"])
    keep = np.r_[0:25, 160:180]
    keep = keep[keep < len(found)]
    found = found.select(np.isin(np.arange(len(found)), keep))
    double = {name: getattr(found, name).astype(np.float64) for name in ("pos", "backbone", "atom_pos")}
    return replace(found, **double, alignment=make_alignment(found.aatype, seed=0))


def moved(residues: Residues, step: np.ndarray) -> Residues:
    """Return a copy with N, CA, C, O moved by ``(N, 4, 3)``, Å."""
    backbone, atom_pos = residues.backbone + step, residues.atom_pos.copy()
    for place, name in enumerate(ATOMS):
        atoms = np.flatnonzero(residues.atom_name == name)
        atom_pos[atoms] += step[residues.atom_residue[atoms], place]
    return replace(residues, backbone=backbone, pos=backbone[:, 1], atom_pos=atom_pos)


def weighted_sum(values: Mapping[str, Tensor]) -> Tensor:
    """Return a number that depends on every value."""
    generator = torch.Generator().manual_seed(1)
    total = torch.zeros((), dtype=torch.float64)
    for value in values.values():
        if value.is_floating_point():
            total = total + (value.double() * torch.randn(value.shape, generator=generator)).sum()
    return total


def double_graph(plan: FeaturePlan, residues: Residues) -> pg.ProteinGraph:
    graph = plan.precompute(residues)
    for key, value in graph.items():
        if isinstance(value, Tensor) and value.is_floating_point():
            graph[key] = value.double()
    return graph


def assert_equals_finite_differences(plan, residues, value, leaf_name, size) -> None:
    """Compare the derivative along random directions with steps of a size, Å; ``value(graph)`` is a number."""
    graph = double_graph(plan, residues)
    leaf = graph[leaf_name].requires_grad_()
    total = value(graph)
    gradient = torch.autograd.grad(total, leaf, allow_unused=True)[0] if total.requires_grad else None
    gradient = torch.zeros_like(leaf) if gradient is None else gradient.nan_to_num()
    rng = np.random.default_rng(0)
    for _ in range(2):
        step = rng.normal(size=residues.backbone.shape)
        if leaf_name == "pos":
            step[:, [0, 2, 3]] = 0
        ends = [double_graph(plan, moved(residues, sign * size * step)) for sign in (1, -1)]
        assert all(torch.equal(end.edge_index, graph.edge_index) for end in ends if "edge_index" in graph)
        expected = (float(value(ends[0])) - float(value(ends[1]))) / (2 * size)
        found = float((gradient * torch.from_numpy(step[:, 1] if leaf_name == "pos" else step)).sum())
        assert abs(found - expected) <= 1e-6 * max(1.0, abs(expected)), (found, expected)


def offline(name: str) -> ComponentSpec:
    (component,) = offline_models(pg.ModelSpec("one", [name])).features
    return component


def components_for(name: str) -> list[ComponentSpec]:
    """Return a featurizer, and before it those that write what it reads."""
    featurizers = {other: pg.featurizers.get(other) for other in pg.featurizers}
    reads = [field for field in featurizers[name].reads if field not in (*ALWAYS, "proteins", "edges")]
    writers = [next(other for other, one in featurizers.items() if field in one.writes) for field in reads]
    found: dict[str, ComponentSpec] = {}
    for writer in writers:
        found |= {component.name: component for component in components_for(writer)}
    return [*found.values(), offline(name)]


#: Their nodes are edges, or points of the surface.
OF_OTHER_NODES = {"edge_cosine", "edge_point", "line_graph"}


@pytest.mark.parametrize("leaf", ["pos", "backbone"])
@pytest.mark.parametrize("name", sorted(set(pg.featurizers) - OF_OTHER_NODES))
def test_gradients_of_featurizers_are_complete_or_an_error(name, leaf, residues):
    kind = pg.featurizers.get(name)
    if not issubclass(kind, StructureFeaturizer | TensorFeaturizer):
        # edges change in steps, so their gradient is 0; gradients of node sets: tests/model/test_node_sets.py
        assert issubclass(kind, EdgeFeaturizer | NodeFeaturizer)
        return
    plan = FeaturePlan(["knn", *components_for(name)])
    written = plan.fields.keys() & set(kind.writes)

    def value(graph: pg.ProteinGraph) -> Tensor:
        f = inputs(graph)
        f = recompute_features(plan, f, plan.precomputed) if graph[leaf].requires_grad else f
        f = plan.expand(f)
        return weighted_sum({field: f[field] for field in sorted(written)})

    try:
        assert_equals_finite_differences(plan, residues, value, leaf, FEATURE_STEP)
    except GradientError as e:
        structure = [node.name for node, featurizer in plan.structure if featurizer.needs_coordinates]
        assert any(one in str(e) for one in structure), e


COMPLETE = (
    "egnn gat gcn gearnet gearnet_edge graph_transformer gvp hybrid ipa mace mpnn painn proteinmpnn schnet "
    "se3_transformer tfn transformer"
)
CASES = [*((name, "backbone") for name in pg.models), ("egnn", "pos"), ("gat", "pos"), ("ipa", "pos")]


@pytest.mark.parametrize(("name", "leaf"), CASES)
def test_gradients_of_models_are_complete_or_an_error(name, leaf, residues):
    spec = offline_models(pg.models.get(name))
    model = pg.build_model(spec, pg.Target("site", "node", "regression", 2), seed=0).double().eval()

    def value(graph: pg.ProteinGraph) -> Tensor:
        return weighted_sum(model(graph))

    try:
        assert_equals_finite_differences(model.plan, residues, value, leaf, MODEL_STEP)
    except GradientError as e:
        assert name not in COMPLETE.split(), e


@pytest.mark.parametrize("name", ["dihedral", "orientation", "sidechain_direction", "ca_density"])
def test_recomputed_features_equal_stored_ones_in_batches(name, structures_dir):
    plan = FeaturePlan([name])
    files = ("1crn", "1jk9", "2erl")
    graphs = [plan.precompute(pg.clean(pg.load_structure(structures_dir / f"{file}.bcif"))) for file in files]
    batch = pg.collate(graphs)
    batch.pos.requires_grad_()
    f = recompute_features(plan, inputs(batch), {name})
    assert f[name].requires_grad and batch[name].abs().sum() > 1
    torch.testing.assert_close(f[name].detach(), batch[name], atol=2e-5, rtol=1e-4)


@pytest.fixture
def gcn(residues) -> tuple[pg.ProteinModel, pg.ProteinGraph]:
    layers = [pg.component("embed", reads=["sasa"], dim=8), "gcn"]
    spec = pg.ModelSpec("mine", ["sasa", "knn"], layers)
    model = pg.build_model(spec, pg.Target("site", "node", "regression", 1), seed=0)
    return model, model.plan.precompute(residues)


def test_incomplete_gradients_raise_unless_they_are_accepted(gcn):
    model, graph = gcn
    model(graph)
    graph.pos.requires_grad_()
    with torch.no_grad():
        model(graph)
    with pytest.raises(GradientError, match="sasa"):
        model(graph)
    model.partial_gradients = True
    assert not model(graph)["logits"].isnan().any()


def test_coordinates_that_differ_raise(residues):
    model = pg.build_model("gcn", pg.Target("site", "node", "regression", 1), seed=0)
    graph = model.plan.precompute(residues)
    graph.pos = (graph.pos + 1).requires_grad_()
    with pytest.raises(GradientError, match="backbone"):
        model(graph)


def test_atom_graphs_have_complete_gradients_or_an_error(structures_dir):
    residues = pg.clean(pg.load_structure(structures_dir / "1crn.bcif"))
    target = pg.Target("site", "node", "regression", 1)
    layers = [pg.component("embed", reads=["atom_type"], dim=8), pg.component("egnn", dim=8)]
    model = pg.build_model(pg.ModelSpec("atoms", ["radius"], layers, node_type="atom"), target, seed=0)
    graph = model.plan.precompute(residues)
    graph.pos.requires_grad_()
    (gradient,) = torch.autograd.grad(model(graph)["logits"].sum(), graph.pos)
    assert gradient.abs().sum() > 0
    layers = [pg.component("embed", reads=["atom_type", "dihedral"], dim=8), pg.component("egnn", dim=8)]
    model = pg.build_model(pg.ModelSpec("atoms", ["radius", "dihedral"], layers, node_type="atom"), target, seed=0)
    graph = model.plan.precompute(residues)
    graph.pos.requires_grad_()
    with pytest.raises(GradientError, match="dihedral"):
        model(graph)
