"""Named edge sets: a model that reads edges of two kinds, each by other layers."""

from __future__ import annotations

import json

import pytest
import torch

import protgraph as pg
from protgraph.data.graph import collate
from protgraph.data.store import GraphStore, write_store
from protgraph.errors import FieldError, WiringError
from protgraph.testing.protein_fixtures import proteins

TARGET = pg.Target("site", "node", "multilabel", 1)
SPEC = pg.ModelSpec(
    "two",
    features=[
        pg.component("knn", k=5),
        "edge_distance",
        pg.component("radius", edges="far", radius=14.0),
        pg.component("edge_distance", edges="far"),
        pg.component("edge_rbf", edges="far", bins=8),
        pg.component("edge_vector", edges="far"),
    ],
    layers=[
        pg.component("embed", reads=["aatype"], dim=8),
        pg.component("gcn", dim=8),
        pg.component("embed", reads=["far_edge_rbf"], dim=8, writes={"h": "far_attr"}),
        pg.component("mpnn", dim=8, edges="far", reads={"edge_attr": "far_attr"}),
        pg.component("tfn", irreps="8x0e+2x1o", edges="far"),
        "invariants",
    ],
)


@pytest.fixture(scope="module")
def model() -> pg.ProteinModel:
    return pg.build_model(SPEC, TARGET, seed=0).eval()


@pytest.fixture(scope="module")
def graphs(model) -> list[pg.ProteinGraph]:
    return [model.plan.precompute(residues) for residues in proteins()]


def edges_alone(residues, name: str, **options) -> torch.Tensor:
    return pg.build_graph(residues, [pg.component(name, **options)]).edge_index


def test_each_set_has_the_edges_of_its_featurizer(graphs):
    for residues, graph in zip(proteins(), graphs, strict=True):
        assert torch.equal(graph.edge_index, edges_alone(residues, "knn", k=5))
        assert torch.equal(graph.far_edge_index, edges_alone(residues, "radius", radius=14.0))
        assert graph.validate()


def test_fields_of_a_set_have_its_rows_and_values(model, graphs):
    f = model.fields_of(graphs[0])
    source, target = graphs[0].far_edge_index
    distance = (graphs[0].pos[source] - graphs[0].pos[target]).norm(dim=1, keepdim=True)
    assert torch.allclose(f["far_edge_dist"].double(), distance.double(), atol=1e-5)
    assert len(f["far_edge_rbf"]) == f["far"].num_edges != f["edges"].num_edges == len(f["edge_dist"])
    assert model.fields["far_attr"].rows == "far" and model.fields["edge_dist"].rows == "edge"


def test_a_layer_reads_the_set_that_it_names(model, graphs):
    f = model.fields_of(graphs[0])
    embed, conv = model.layers[0], model.layers[1]
    other = pg.ModelSpec("far", SPEC.features, [SPEC.layers[0], pg.component("gcn", dim=8, edges="far")])
    far = pg.build_model(other, TARGET, seed=0).eval()
    h = embed({"aatype": f["aatype"]})["h"]
    far.layers.load_state_dict(torch.nn.ModuleList([embed, conv]).state_dict())
    assert torch.equal(far.embed(graphs[0])["h"], conv({"h": h, "edges": f["far"]})["h"])
    assert not torch.allclose(conv({"h": h, "edges": f["far"]})["h"], conv({"h": h, "edges": f["edges"]})["h"])


def test_reads_is_the_same_as_edges(graphs):
    layers = [SPEC.layers[0], pg.component("gcn", dim=8, reads={"edges": "far"})]
    a = pg.build_model(pg.ModelSpec("a", SPEC.features, layers), TARGET, seed=0)
    b = pg.build_model(
        pg.ModelSpec("b", SPEC.features, [layers[0], pg.component("gcn", dim=8, edges="far")]), TARGET, seed=0
    )
    assert torch.equal(a(graphs[0])["logits"], b(graphs[0])["logits"])


def test_a_batch_equals_its_proteins(model, graphs):
    batch = collate(graphs)
    assert batch.far_max_degree == int(batch.far_edge_index[1].bincount().max())
    with torch.no_grad():
        logits = model(batch)["logits"]
        assert torch.allclose(logits, torch.cat([model(graph)["logits"] for graph in graphs]), atol=1e-5)
    from torch_geometric.data import Batch

    by_pyg = Batch.from_data_list(graphs)
    assert torch.equal(by_pyg.far_edge_index, batch.far_edge_index)
    assert torch.equal(by_pyg.get_example(1).far_edge_index, graphs[1].far_edge_index)


def test_a_store_keeps_all_sets(model, graphs, tmp_path):
    write_store(tmp_path / "graphs", graphs)
    store = GraphStore(tmp_path / "graphs")
    for number, graph in enumerate(graphs):
        assert torch.equal(store[number].far_edge_index, graph.far_edge_index)
        assert torch.equal(store[number].edge_index, graph.edge_index)
    a, b = store.collate([1, 0]), collate([graphs[1], graphs[0]])
    assert torch.equal(a.far_edge_index, b.far_edge_index) and a.far_max_degree == b.far_max_degree
    assert torch.equal(model(a)["logits"], model(b)["logits"])


def test_gradients_reach_the_coordinates_through_each_set(model, graphs):
    model = pg.build_model(SPEC, TARGET, seed=0).double().eval()
    graph = graphs[0].clone()
    graph.pos = graph.pos.double()
    graph.backbone = graph.backbone.double()
    graph.pos.requires_grad_()
    value = model(graph)["logits"].sum()
    (gradient,) = torch.autograd.grad(value, graph.pos)
    assert gradient.abs().max() > 0
    direction = torch.randn(graph.pos.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    step, base = 1e-5, graph.pos.detach()
    shifted = []
    for sign in (1, -1):
        moved = graph.clone()
        moved.pos = base + sign * step * direction
        moved.backbone = graph.backbone.clone()
        moved.backbone[:, 1] = moved.pos
        with torch.no_grad():
            shifted.append(model(moved)["logits"].sum())
    assert float((gradient * direction).sum()) == pytest.approx(float(shifted[0] - shifted[1]) / (2 * step), rel=1e-5)


def test_a_set_of_several_featurizers_has_kinds():
    features = [pg.component("knn", k=3, edges="far"), pg.component("sequence", edges="far")]
    graph = pg.build_graph(proteins()[0], features)
    assert "edge_index" not in graph and graph.far_edge_kind.shape == (graph.far_edge_index.size(1), 2)
    together = pg.build_graph(proteins()[0], [pg.component("knn", k=3), "sequence"])
    assert torch.equal(graph.far_edge_index, together.edge_index)
    assert torch.equal(graph.far_edge_kind, together.edge_kind)


def test_edges_are_data(tmp_path):
    assert pg.ModelSpec.from_dict(json.loads(json.dumps(SPEC.to_dict()))) == SPEC
    (tmp_path / "m.toml").write_text(SPEC.to_toml())
    assert pg.ModelSpec.from_toml(tmp_path / "m.toml") == SPEC
    plan = SPEC.plan()
    assert pg.featurize.FeaturePlan(plan.components).key() == plan.key()


@pytest.mark.parametrize(
    "features, layer, parts",
    [
        (["knn"], pg.component("gcn", edges="far"), ["'far'", "layers[1] (gcn)"]),
        (["knn", pg.component("edge_distance", edges="fra")], "gcn", ["'fra'", "features[1]"]),
        (["knn", pg.component("radius", edges="far")], pg.component("mlp", edges="far"), ["reads no edges"]),
        (["knn", pg.component("dihedral", edges="far")], "gcn", ["reads no edges"]),
        (["knn", pg.component("radius", edges="pos")], "gcn", ["'pos'", "name of a field"]),
        (
            ["knn", "edge_distance", pg.component("radius", edges="far")],
            pg.component("mpnn", edges="far", reads={"edge_attr": "edge_dist"}),
            ["'edge_dist' is on the edges 'edges'", "edges='far'"],
        ),
        (
            ["knn", "edge_distance", pg.component("radius", edges="far"), pg.component("edge_distance", edges="far")],
            pg.component("embed", reads=["edge_dist", "far_edge_dist"], writes={"h": "e"}),
            ["several edge sets"],
        ),
    ],
)
def test_wrong_wiring_names_the_edge_set(features, layer, parts):
    spec = pg.ModelSpec("m", features=features, layers=[pg.component("embed", reads=["aatype"]), layer])
    with pytest.raises(WiringError) as e:
        pg.build_model(spec, TARGET)
    assert all(part in str(e.value) for part in parts), str(e.value)


def test_edges_and_reads_must_agree():
    with pytest.raises(WiringError, match="Give one of them"):
        pg.component("gcn", edges="far", reads={"edges": "near"})


def test_wrong_edges_of_a_set_are_found(graphs):
    graph = graphs[0].clone()
    graph.far_edge_index = graph.far_edge_index.flip(1)
    with pytest.raises(FieldError, match="far_edge_index of .* is not sorted"):
        graph.validate()


#: Without the lengths of the edges that have no name, which no layer reads.
ALL_READ = pg.ModelSpec("all_read", [f for i, f in enumerate(SPEC.features) if i != 1], SPEC.layers)


@pg.testing.parametrize_with_checks([ALL_READ])
def test_conformity(component, check):
    check(component)
