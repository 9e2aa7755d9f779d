"""Surface points in a graph, messages with weights against a loop, and probabilities in any orientation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from protgraph_plugins.surface.layer import SurfaceMessage
from scipy.spatial.transform import Rotation

import protgraph as pg
from protgraph.ops import Edges

TARGET = pg.Target("site", "node", "multilabel", 1)


@pytest.fixture(scope="module")
def protein(structures_dir):
    return pg.clean(pg.load_structure(structures_dir / "1ubq.bcif"))


@pytest.fixture(scope="module")
def model() -> pg.ProteinModel:
    return pg.build_model("surface", TARGET, seed=0).double().eval()


def test_edges_join_points_with_their_residues_and_with_near_points(model, protein):
    graph = model.plan.precompute(protein)
    residue, point = graph.to_sas_edge_index
    assert torch.equal(graph.from_sas_edge_index[0].sort().values, torch.arange(len(graph.sas_pos)))
    assert len(residue) == len(graph.sas_pos)
    distance = (graph.sas_pos[point] - graph.pos[residue]).norm(dim=1)
    assert distance.max() < 13  # from CA to the end of the longest side chain and one atom beyond
    j, i = graph.patch_edge_index
    assert (graph.sas_pos[j] - graph.sas_pos[i]).norm(dim=1).max() <= 7


def test_edge_features_are_those_of_point_pairs(model, protein):
    f = model.plan.featurize(model.plan.precompute(protein))
    j, i = f["patch_edge_index"]
    pos, normal = f["sas_pos"].double(), f["sas_point_normal"].double()
    vector = pos[j] - pos[i]
    distance = vector.norm(dim=1, keepdim=True)
    direction = vector / distance
    found = f["patch_edge_point"].double()
    centers = torch.linspace(0, 7, 8, dtype=torch.double)
    assert (found[:, :8] - torch.exp(-(((distance - centers) * 8 / 7) ** 2))).abs().max() < 1e-4
    cosines = [(normal[i] * normal[j]).sum(1), (normal[i] * direction).sum(1), -(normal[j] * direction).sum(1)]
    assert (found[:, 8:] - torch.stack(cosines, 1)).abs().max() < 1e-4


def test_a_message_is_a_weighted_sum_over_sources():
    fields = {
        "h": pg.FieldSpec("h", "node", "4x0e"),
        "source_h": pg.FieldSpec("source_h", "node", "3x0e"),
        "source_point_weight": pg.FieldSpec("source_point_weight", "node", "1x0e"),
        "edge_attr": pg.FieldSpec("edge_attr", "edge", "2x0e"),
        "edge_dist": pg.FieldSpec("edge_dist", "edge", "1x0e"),
        "edges": pg.data.field("edges"),
    }
    torch.manual_seed(0)
    layer = SurfaceMessage(fields, dim=5, cutoff=6.0).double()
    index = torch.tensor([[0, 1, 2, 0], [0, 0, 0, 2]])
    h, s = torch.randn(3, 4).double(), torch.randn(3, 3).double()
    weight = torch.tensor([[1.0], [0.0], [0.4]]).double()
    attr, dist = torch.randn(4, 2).double(), torch.tensor([[1.0], [2.0], [5.9], [6.0]]).double()
    f = {"h": h, "source_h": s, "source_point_weight": weight, "edge_attr": attr, "edge_dist": dist}
    found = layer(f | {"edges": Edges(index, 3)})["h"]
    for i in range(3):
        total, sum_of_weights = torch.zeros(5).double(), 1.0
        for e in range(4):
            j = int(index[0, e])
            if int(index[1, e]) == i:
                w = weight[j, 0] * 0.5 * (torch.cos(torch.pi * dist[e, 0] / 6.0) + 1)
                z = layer.target(h[i]) + layer.source(s[j]) + layer.edge(attr[e])
                total += w * torch.nn.functional.gelu(z)
                sum_of_weights += w
        expected = layer.update(torch.cat([h[i], total / sum_of_weights])[None])[0]
        assert torch.allclose(found[i], expected, atol=1e-12)

    # a source of weight 0 changes nothing
    without = {"edge_attr": attr[[0, 2, 3]], "edge_dist": dist[[0, 2, 3]], "edges": Edges(index[:, [0, 2, 3]], 3)}
    assert torch.allclose(layer(f | without)["h"], found, atol=1e-12)


def test_probabilities_do_not_depend_on_orientation_or_order_of_atoms(model, protein):
    expected = torch.sigmoid(model(model.plan.precompute(protein))["logits"])
    rotation = Rotation.random(random_state=4).as_matrix()
    order = np.lexsort((np.random.default_rng(0).random(len(protein.atom_pos)), protein.atom_residue))
    moved = replace(
        protein,
        pos=(protein.pos @ rotation.T + 30).astype(np.float32),
        backbone=(protein.backbone @ rotation.T + 30).astype(np.float32),
        atom_pos=(protein.atom_pos[order] @ rotation.T + 30).astype(np.float32),
        atom_name=protein.atom_name[order],
        atom_element=protein.atom_element[order],
    )
    found = torch.sigmoid(model(model.plan.precompute(moved))["logits"])
    assert expected.std() > 1e-3
    assert (found - expected).abs().max() < 1e-4


def test_points_reach_the_prediction(model, protein):
    graph = model.plan.precompute(protein)
    expected = model(graph)["logits"]
    graph.sas_point_chemistry = graph.sas_point_chemistry + 1
    assert (model(graph)["logits"] - expected).abs().max() > 1e-4


def test_a_protein_without_points_is_predicted(model, protein):
    nothing = replace(protein, backbone=np.full_like(protein.backbone, np.nan))
    logits = model(model.plan.precompute(nothing))["logits"]
    assert logits.shape == (len(protein), 1) and logits.isfinite().all()


@pg.testing.parametrize_with_checks(["sas", "edge_point", "surface_message"])
def test_conformity(component, check):
    check(component)
