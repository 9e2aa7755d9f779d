"""Columns of the site descriptors against other featurizers, and geometry of side chains on edges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from protgraph_plugins.site_mpnn.descriptors import sidechain_points

from protgraph.featurize import build_graph
from protgraph.registry.component import component
from protgraph.structure import ALPHABET

FEATURES = [
    *("electrostatics", "shell_composition", "surface_shape", "protein_composition", "sidechain_point"),
    *("contact_number", "half_sphere_exposure", "residue_frame", "edge_sidechain"),
    component("sasa", points=100),
    component("knn", k=8),
]


@pytest.fixture(scope="module")
def graph(proteins):
    return build_graph(proteins[1], FEATURES)


def test_shape_contains_areas_and_half_spheres_of_other_featurizers(graph):
    shape = graph.surface_shape
    assert torch.allclose(shape[:, :2].sum(1, keepdim=True), graph.sasa, atol=1e-3)
    assert (shape[:, 2] <= shape[:, 0] + 1e-3).all()  # polar atoms are a part of the side chain
    assert torch.equal(shape[:, 9:11], graph.half_sphere_cb)  # 13 Å
    assert (shape[:, 3:7].diff(dim=1) >= 0).all()  # neighbors within growing radii
    assert shape[:, -1].square().mean().item() == pytest.approx(1, abs=1e-5)  # over the radius of gyration


def test_composition_is_constant_and_sums_to_one(graph, proteins):
    composition = graph.protein_composition
    assert (composition == composition[0]).all()
    known = np.mean([letter != "X" for letter in proteins[1].sequence])
    assert composition[0, :12].sum().item() == pytest.approx(known, abs=1e-5)
    assert composition[0, 24].item() == pytest.approx(np.log(len(proteins[1])))
    ca = proteins[1].pos.astype(np.float64)
    variance = np.cov(ca.T, bias=True)
    assert composition[0, 25:].square().sum().item() == pytest.approx(np.trace(variance), rel=1e-5)


def test_edges_hold_distance_and_angles_of_side_chains(graph, proteins):
    j, i = graph.edge_index.numpy()
    side = sidechain_points(proteins[1])
    vector = side.center[j] - side.center[i]
    distance = np.linalg.norm(vector, axis=1)
    found = graph.edge_sidechain.double().numpy()
    centers = np.linspace(0, 20, 12)
    assert np.abs(found[:, :12] - np.exp(-(((distance[:, None] - centers) * 0.6) ** 2))).max() < 1e-4
    u = vector / distance[:, None]
    frame = graph.frame.double().numpy()
    assert np.abs(found[:, 12:15] - np.einsum("ekx,ex->ek", frame[i], u)).max() < 1e-4
    back = proteins[1].pos[i].astype(np.float64) - proteins[1].pos[j]
    back /= np.linalg.norm(back, axis=1, keepdims=True)
    assert np.abs(found[:, 15:18] - np.einsum("ekx,ex->ek", frame[j], back)).max() < 1e-4
    mine, other = side.direction[i], side.direction[j]
    angles = np.stack([(mine * other).sum(1), (mine * u).sum(1), -(other * u).sum(1)], 1)
    assert np.abs(found[:, 18:] - angles).max() < 1e-4
    assert found[:, 18:].std() > 0.3


def test_a_charge_raises_the_potential_around_it_only_for_others(proteins):
    residues = proteins[1]
    aatype = np.full_like(residues.aatype, ALPHABET.index("A"))
    assert not build_graph(replace(residues, aatype=aatype), ["electrostatics"]).electrostatics.any()
    place = len(residues) // 2
    aatype[place] = ALPHABET.index("K")
    found = build_graph(replace(residues, aatype=aatype), ["electrostatics"]).electrostatics
    assert not found[place].any()
    others = np.arange(len(residues)) != place
    assert (found[others][:, 2::3][:, :6] > 0).all()
