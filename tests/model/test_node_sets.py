"""Node sets: residues beside the atoms of a graph, edges within and between them, and layers that run on them."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch

import protgraph as pg
from protgraph.data.graph import collate
from protgraph.data.store import GraphStore, write_store
from protgraph.errors import FieldError, GradientError, OptionError, WiringError
from protgraph.featurize.node_sets import join_members, values_at
from protgraph.model import mermaid_text, summarize_model
from protgraph.testing.protein_fixtures import proteins
from protgraph.train.coordinate_noise import check_noise_allowed
from tests.plugins.outside import surface, two_levels

TARGET = pg.Target("site", "node", "multilabel", 1)
EMBED = pg.component("embed", reads=["aatype"], dim=8)


@pytest.fixture(scope="module", params=[two_levels, surface], ids=["residues", "points"])
def model(request) -> pg.ProteinModel:
    return pg.build_model(request.param.MODEL, TARGET, seed=0).eval()


@pytest.fixture(scope="module")
def graphs(model) -> list[pg.ProteinGraph]:
    return [model.plan.precompute(residues) for residues in proteins()]


@pytest.fixture(scope="module")
def atoms() -> pg.ProteinGraph:
    return pg.featurize.FeaturePlan(two_levels.FEATURES, node_type="atom").precompute(proteins()[0])


def test_the_residues_of_an_atom_graph_have_the_fields_of_a_residue_graph(atoms):
    graph = pg.build_graph(proteins()[0], ["knn", "dihedral"])
    for name in ("pos", "aatype", "chain", "seq_pos", "backbone", "dihedral"):
        assert torch.equal(atoms[f"residues_{name}"].nan_to_num(), graph[name].nan_to_num())
    assert len(atoms.residues_pos) < atoms.num_nodes and atoms.level("residues_pos") == "residues"


def test_edges_between_residues_are_those_of_a_residue_graph(atoms):
    graph = pg.build_graph(proteins()[0], [pg.component("knn", k=6)])
    assert torch.equal(atoms.near_edge_index, graph.edge_index)
    sequence = pg.featurize.FeaturePlan(
        ["residues", pg.component("sequence", nodes="residues", edges="chain_edges")], node_type="atom"
    )
    expected = pg.build_graph(proteins()[0], ["sequence"]).edge_index
    assert torch.equal(sequence.precompute(proteins()[0]).chain_edges_edge_index, expected)


def test_each_atom_is_joined_to_its_residue(atoms):
    source, target = atoms.to_residues_edge_index
    assert torch.equal(atoms.residue[source], target) and len(source) == atoms.num_nodes
    assert torch.equal(atoms.from_residues_edge_index, torch.stack([atoms.residue, torch.arange(atoms.num_nodes)]))


def test_pooling_equals_a_loop_over_residues(atoms):
    features = two_levels.FEATURES
    for reduce, of_rows in (("mean", torch.mean), ("sum", torch.sum), ("max", torch.amax)):
        layers = [EMBED, pg.component("pool", edges="to_residues", reduce=reduce)]
        layers += [pg.component("pool", edges="from_residues", writes={"h": "back"})]
        spec = pg.ModelSpec("m", features=features, layers=layers, node_type="atom", readout={"h": "back"})
        f = pg.build_model(spec, TARGET, seed=0).embed(atoms)
        rows = [of_rows(f["h"][atoms.residue == number], 0) for number in range(len(atoms.residues_pos))]
        assert torch.allclose(f["residues_h"], torch.stack(rows), atol=1e-6)
        assert torch.equal(f["back"], f["residues_h"][atoms.residue])


def test_edges_between_two_sets_are_those_within_the_radius():
    graph = surface.MODEL.plan().precompute(proteins()[0])
    distance = torch.cdist(graph.outside_points_pos.double(), graph.pos.double())
    source, target = graph.touch_edge_index
    expected = {tuple(pair) for pair in (distance <= 7).nonzero().tolist()}
    assert set(zip(source.tolist(), target.tolist(), strict=True)) == expected and expected
    f = surface.MODEL.plan().featurize(graph)
    assert torch.allclose(f.touch_edge_dist[:, 0].double(), distance[source, target], atol=1e-4)
    nearest = [pg.component("knn", k=3, sources="outside_points", edges="few"), "outside_points"]
    graph = pg.build_graph(proteins()[0], nearest)
    source, target = graph.few_edge_index
    assert torch.equal(target, torch.arange(graph.num_nodes).repeat_interleave(3))
    chosen = distance[source, target].view(-1, 3)  # the points of a residue are equally far from it
    assert torch.allclose(chosen, distance.T.sort(dim=1).values[:, :3], atol=1e-5)


def test_a_batch_equals_its_proteins(model, graphs):
    single = torch.cat([model(graph)["logits"] for graph in graphs])
    batch = collate(graphs)
    assert torch.allclose(model(batch)["logits"], single, atol=1e-5)
    by_pyg = Batch.from_data_list(graphs)
    assert torch.allclose(model(by_pyg)["logits"], single, atol=1e-5)
    for separated in (batch.get_example(1), by_pyg.get_example(1)):
        for name, value in graphs[1].items():
            if isinstance(value, torch.Tensor):
                assert torch.equal(separated[name].nan_to_num(), value.nan_to_num()), name


def test_a_store_keeps_all_sets(model, graphs, tmp_path):
    write_store(tmp_path / "graphs", graphs)
    store = GraphStore(tmp_path / "graphs")
    for number, graph in enumerate(graphs):
        assert torch.equal(model(store[number])["logits"], model(graph)["logits"])
    expected = model(collate([graphs[1], graphs[0]]))["logits"]
    for fields in (None, model.batch_fields):
        assert torch.equal(model(store.collate([1, 0], fields=fields))["logits"], expected)


def test_sets_are_data(model, tmp_path):
    spec = model.spec
    assert pg.ModelSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    (tmp_path / "m.toml").write_text(spec.to_toml())
    assert pg.ModelSpec.from_toml(tmp_path / "m.toml") == spec
    plan = spec.plan()
    assert pg.featurize.FeaturePlan(plan.components, node_type=plan.node_type).key() == plan.key()
    assert pg.component("linear", nodes="residues").to_dict() == {"name": "linear", "nodes": "residues"}


def test_the_description_names_rows_of_sets():
    model = pg.build_model(two_levels.MODEL, TARGET, seed=0)
    written = [field for row in summarize_model(model) for field in row.writes]
    assert "residues (node set)" in written and "near_edge_dist (E of near, 1) 1x0e" in written
    assert "residues_h (N of residues, 16) 16x0e" in written
    assert "pool" in mermaid_text(two_levels.MODEL) and not two_levels.MODEL.dead_layers()


def test_gradients_reach_the_coordinates_of_residues_and_not_of_points():
    features = ["residues", pg.component("radius", nodes="residues", edges="near", radius=12.0)]
    features += [pg.component("edge_rbf", bins=4, edges="near"), pg.component("radius", radius=4.5)]
    features.insert(2, pg.component("edge_distance", edges="near"))
    layers = [
        pg.component("embed", reads=["residues_aatype"], dim=8, nodes="residues"),
        pg.component("mpnn", dim=8, edges="near", reads={"edge_attr": "near_edge_rbf"}),
        pg.component("pool", edges="from_residues"),
    ]
    spec = pg.ModelSpec("m", features=features, layers=layers, node_type="atom")
    model = pg.build_model(spec, TARGET, seed=0).double().eval()
    graph = model.plan.precompute(proteins()[0])
    graph.pos = graph.pos.double().requires_grad_()
    (gradient,) = torch.autograd.grad(model(graph)["logits"].sum(), graph.pos)
    is_ca = graph.atom_type == 1
    assert gradient[is_ca].abs().max() > 0 and gradient[~is_ca].abs().max() == 0
    step, moved = 1e-5, graph.clone()
    direction = torch.randn(graph.pos.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    values = []
    for sign in (1, -1):
        moved.pos = graph.pos.detach() + sign * step * direction
        moved.residues_pos = moved.pos[is_ca]
        with torch.no_grad():
            values.append(float(model(moved)["logits"].sum()))
    assert float((gradient * direction).sum()) == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-5)

    model = pg.build_model(surface.MODEL, TARGET, seed=0)
    graph = model.plan.precompute(proteins()[0])
    graph.pos.requires_grad_()
    with pytest.raises(GradientError, match="outside_points"):
        model(graph)


def test_noise_on_batches_is_refused(model):
    with pytest.raises(OptionError):
        check_noise_allowed(model.plan)


NEAR = ["residues", "knn", pg.component("knn", nodes="residues", edges="near"), "edge_distance"]


@pytest.mark.parametrize(
    "features, layers, parts",
    [
        (["knn", pg.component("dihedral", nodes="residuez")], [], ["features[1]", "'residuez'"]),
        (["residues", pg.component("knn", nodes="residues")], [], ["features[1]", "no name", "edges='near'"]),
        (["residues", pg.component("dihedral", sources="residues")], [], ["sources='residues'"]),
        (["residues", "residues"], [], ["features[1]", "'residues'"]),
        ([*NEAR, pg.component("knn", edges="near")], [], ["features[4]", "'near'", "another featurizer"]),
        (NEAR, [pg.component("linear", nodes="residuez")], ["layers[1] (linear)", "'residuez'", "'residues'"]),
        (NEAR, [pg.component("linear", nodes="residues")], ["layers[1] (linear)", "'residues_h'"]),
        (NEAR, [pg.component("gcn", edges="near", reads={"h": "h"})], ["'h' is per node", "'residues'", "'pool'"]),
        (NEAR, [pg.component("gcn", nodes="residues", reads={"h": "h"})], ["nodes='residues'", "'edges'"]),
        (NEAR, [pg.component("gcn", edges="to_residues", reads={"h": "h"})], ["'nodes'", "'residues'", "source_"]),
        (NEAR, [pg.component("add", reads=["h", "residues_aatype"])], ["node sets", "'residues'"]),
        (NEAR, [pg.component("linear", sources="residues")], ["sources='residues'", "edge featurizers"]),
        ([*NEAR, pg.component("sequence", sources="residues", edges="s")], [], ["features[4]", "between residues"]),
    ],
)
def test_wrong_wiring_names_the_set(features, layers, parts):
    with pytest.raises(WiringError) as e:
        pg.build_model(pg.ModelSpec("m", features=features, layers=[EMBED, *layers]), TARGET)
    assert all(part in str(e.value) for part in parts), str(e.value)


def test_a_head_per_node_does_not_read_residues_of_an_atom_graph():
    spec = pg.ModelSpec(
        "m",
        features=["residues", pg.component("radius", radius=4.5)],
        layers=[EMBED, pg.component("pool", edges="to_residues")],
        readout={"h": "residues_h"},
        node_type="atom",
    )
    with pytest.raises(WiringError, match="'residues_h' is per node of 'residues'"):
        pg.build_model(spec, TARGET)
    of_protein = pg.Target("fold", "graph", "classification", 3)
    with pytest.raises(WiringError, match="proteins"):
        pg.build_model(spec, of_protein)
    spec = pg.ModelSpec.from_dict(spec.to_dict() | {"readout": {"h": "residues_h", "proteins": "residues"}})
    graph = spec.plan().precompute(proteins()[0])
    assert pg.build_model(spec, of_protein)(graph)["logits"].shape == (1, 3)


def test_the_maximum_of_vectors_is_refused():
    fields = {"source_h": pg.FieldSpec("v", "node", "4x1o"), "edges": pg.data.field("edges")}
    with pytest.raises(WiringError, match="rotation"):
        pg.layers.create("pool", fields, options={"reduce": "max"})


def test_rows_of_a_set_are_checked(atoms):
    graph = atoms.clone()
    graph.residues_aatype = graph.residues_aatype[1:]
    with pytest.raises(FieldError, match="residues_aatype"):
        graph.validate()
    graph = atoms.clone()
    graph.to_residues_edge_index = graph.to_residues_edge_index + 1
    with pytest.raises(FieldError, match="to_residues_edge_index"):
        graph.validate()


def test_nodes_of_no_residue_are_joined_to_none():
    pos = np.arange(12.0).reshape(4, 3)
    first, second = pg.NodeList(pos, np.array([1, -1, 0, 1])), pg.NodeList(pos[:3], np.array([-1, 1, 0]))
    assert join_members(first, second).index.tolist() == [[0, 3, 2], [1, 1, 2]]
    assert values_at(first, np.array([5.0, 6.0])).tolist() == [6.0, 0.0, 5.0, 6.0]


@pg.testing.parametrize_with_checks(["residues", "pool"])
def test_conformity(component, check):
    check(component)
