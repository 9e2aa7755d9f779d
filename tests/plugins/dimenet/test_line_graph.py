"""Line graph of the edges, and the cosines of the angles between adjacent edges."""

from __future__ import annotations

import pytest
import torch

import protgraph as pg
from protgraph.data.graph import collate
from protgraph.errors import WiringError
from protgraph.testing.protein_fixtures import proteins

COSINE = pg.component("edge_cosine", edges="line", reads={"node_vec": "edge_vec"})
TARGET = pg.Target("site", "node", "multilabel", 1)


def fields(features: list[object], graphs_of=None) -> dict[str, object]:
    plan = pg.featurize.FeaturePlan(features)
    batch = collate([plan.precompute(residues) for residues in graphs_of or proteins()])
    from protgraph.featurize.plan import inputs

    return plan.expand(inputs(batch))


@pytest.mark.parametrize("edges", [pg.component("knn", k=4), pg.component("radius", radius=8.0)], ids=["knn", "radius"])
def test_pairs_of_edges_equal_those_of_a_double_loop(edges):
    f = fields([edges, "line_graph"])
    ends = f["edges"].index.T.tolist()
    expected = set()
    for first, (k, j) in enumerate(ends):
        for second, (middle, i) in enumerate(ends):
            if middle == j and i != k:
                expected.add((first, second))
    pairs = f["line"].index
    assert {tuple(pair) for pair in pairs.T.tolist()} == expected
    assert len(expected) == pairs.size(1) > 0
    assert bool((pairs[1].diff() >= 0).all()) and f["line"].num_nodes == len(ends)


def test_cosines_equal_those_of_the_positions():
    f = fields([pg.component("knn", k=4), "edge_vector", "line_graph", COSINE])
    (k, j), (_, i) = f["edges"].index[:, f["line"].index[0]], f["edges"].index[:, f["line"].index[1]]
    pos = f["pos"].double()
    expected = torch.nn.functional.cosine_similarity(pos[k] - pos[j], pos[i] - pos[j])
    assert torch.allclose(f["line_edge_cosine"][:, 0].double(), expected, atol=1e-5)
    assert expected.min() < 0.2 < 0.7 < expected.max()


def test_it_is_made_of_a_named_edge_set():
    f = fields([pg.component("radius", radius=8.0, edges="near"), pg.component("line_graph", edges="near")])
    assert f["line"].num_nodes == f["near"].num_edges


def test_any_layer_runs_on_edges_and_all_share_one_line_graph():
    layers = [
        pg.component("embed", reads=["edge_dist"], dim=8, writes={"h": "e"}),
        pg.component("gcn", dim=8, edges="line", reads={"h": "e"}, writes={"h": "e"}),
        pg.component("mpnn", dim=8, edges="line", reads={"h": "e", "edge_attr": "line_edge_cosine"}, writes={"h": "e"}),
        pg.component("embed", reads=["aatype"], dim=8),
        pg.component("mpnn", dim=8, reads={"edge_attr": "e"}),
    ]
    features = [pg.component("knn", k=4), "edge_distance", "edge_vector", "line_graph", COSINE]
    model = pg.build_model(pg.ModelSpec("m", features=features, layers=layers), TARGET, seed=0).eval()
    assert model.fields["e"].rows == "edge"
    graphs = [model.plan.precompute(residues) for residues in proteins()]
    batch = collate(graphs)
    f = model.fields_of(batch)
    by_hand = model.layers[1]({"h": model.layers[0]({"edge_dist": f["edge_dist"]})["h"], "edges": f["line"]})["h"]
    assert len(by_hand) == f["edges"].num_edges
    single = torch.cat([model(graph)["logits"] for graph in graphs])
    assert torch.allclose(model(batch)["logits"], single, atol=1e-5)


@pytest.mark.parametrize(
    "layer, parts",
    [
        (pg.component("gcn", edges="line"), ["'h' is per node", "edges 'edges'"]),
        (pg.component("mpnn", reads={"edge_attr": "line_edge_cosine"}), ["is on the edges 'line'", "edges='edges'"]),
    ],
)
def test_fields_of_other_levels_are_refused(layer, parts):
    features = [pg.component("knn", k=4), "edge_vector", "line_graph", COSINE]
    layers = [pg.component("embed", reads=["aatype"]), layer]
    with pytest.raises(WiringError) as e:
        pg.build_model(pg.ModelSpec("m", features=features, layers=layers), TARGET)
    assert all(part in str(e.value) for part in parts), str(e.value)


def test_a_line_graph_that_no_featurizer_makes_is_named():
    with pytest.raises(WiringError, match="edges='line' does not exist"):
        pg.featurize.FeaturePlan(["knn", "edge_vector", COSINE])


@pg.testing.parametrize_with_checks(["line_graph", "edge_cosine"])
def test_conformity(component, check):
    check(component)
