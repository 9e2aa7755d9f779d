"""Quaternions against scipy and trRosetta angles against biotite, on real proteins."""

from __future__ import annotations

from dataclasses import replace

import biotite.structure as struc
import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from protgraph.featurize import build_graph
from protgraph.featurize.frames import EdgeQuaternion, EdgeTrRosetta
from protgraph.ops import Edges
from protgraph.registry.component import component
from protgraph.structure.descriptors.backbone_geometry import virtual_cb


@pytest.fixture(scope="module")
def graph(proteins):
    return build_graph(proteins[1], [component("knn", k=10), "residue_frame", "edge_quaternion", "edge_trrosetta"])


def test_quaternions_equal_scipy(graph):
    j, i = graph.edge_index
    relative = torch.einsum("ekx,elx->ekl", graph.frame[i], graph.frame[j])
    expected = Rotation.from_matrix(relative.double().numpy()).as_quat(canonical=True, scalar_first=True)
    framed = graph.frame.flatten(1).any(1)
    both = (framed[i] & framed[j]).numpy()
    safe = both & (expected[:, 0] > 1e-3)  # at half turns, the sign is arbitrary
    assert safe.sum() > 1000
    assert np.abs(graph.edge_quaternion.numpy() - expected)[safe].max() < 1e-5
    assert not graph.edge_quaternion[~torch.from_numpy(both)].any()


def test_half_turns_and_the_identity_are_unit_quaternions(float64):
    turns = [np.eye(3), *(Rotation.from_rotvec(np.pi * np.eye(3)[k]).as_matrix() for k in range(3))]
    frame = torch.from_numpy(np.stack(turns)).requires_grad_()
    edges = Edges(torch.tensor([[1, 2, 3, 0], [0, 0, 0, 1]]), 4)
    features = EdgeQuaternion()({"frame": frame, "edges": edges})["edge_quaternion"]
    assert torch.allclose(features.abs(), torch.eye(4)[[1, 2, 3, 1]], atol=1e-12)
    (gradient,) = torch.autograd.grad(features.square().sum() + features.sum(), frame)
    assert torch.isfinite(gradient).all()


def test_angles_equal_biotite(graph):
    j, i = graph.edge_index.numpy()
    backbone = graph.backbone.double().numpy()
    cb, (n, ca) = virtual_cb(backbone), np.moveaxis(backbone[:, :2], 1, 0)
    dihedrals = (
        struc.dihedral(ca[i], cb[i], cb[j], ca[j]),
        struc.dihedral(n[i], ca[i], cb[i], cb[j]),
        struc.dihedral(n[j], ca[j], cb[j], cb[i]),
    )
    angles = (struc.angle(ca[i], cb[i], cb[j]), struc.angle(ca[j], cb[j], cb[i]))
    expected = np.stack([np.cos(a) for a in (*dihedrals, *angles)] + [np.sin(a) for a in (*angles, *dihedrals)], 1)
    exact = {
        "backbone": graph.backbone.double(),
        "backbone_mask": graph.backbone_mask,
        "edges": Edges.from_graph(graph),
    }
    ours = EdgeTrRosetta()(exact)
    values, mask = (ours[name].numpy() for name in EdgeTrRosetta.writes)
    assert mask.mean() > 0.99
    known = np.concatenate([mask, mask[:, [3, 4, 0, 1, 2]]], 1)
    assert np.abs(values - expected)[known].max() < 2e-4  # biotite computes in float32
    assert not values[~known].any()
    assert np.abs(graph.edge_trrosetta.numpy() - values).max() < 1e-3  # float32, three atoms nearly in a line


def test_both_directions_have_the_same_angles(proteins):
    graph = build_graph(proteins[1], [component("radius", radius=9.0), "edge_trrosetta"])
    place = {pair: e for e, pair in enumerate(map(tuple, graph.edge_index.T.tolist()))}
    back = torch.tensor([place[i, j] for j, i in graph.edge_index.T.tolist()])
    swapped = [0, 2, 1, 4, 3, 6, 5, 7, 9, 8]
    assert torch.allclose(graph.edge_trrosetta[back], graph.edge_trrosetta[:, swapped], atol=1e-5)


def test_missing_atoms_mask_their_edges_and_gradients_stay_finite(proteins):
    some = proteins[1].select(np.arange(len(proteins[1])) < 12)
    backbone = some.backbone.copy()
    backbone[3, 0] = np.nan
    graph = build_graph(replace(some, backbone=backbone), [component("knn", k=5), "edge_trrosetta"])
    touches = (graph.edge_index == 3).any(0)
    assert not graph.edge_trrosetta_mask[touches].any() and not graph.edge_trrosetta[touches].any()
    assert graph.edge_trrosetta_mask[~touches].all()
    there = torch.ones(12, 4, dtype=torch.bool)
    point = torch.ones(12, 4, 3, requires_grad=True)
    f = {"backbone": point, "backbone_mask": there, "edges": Edges.from_graph(graph)}
    features = EdgeTrRosetta()(f)
    (gradient,) = torch.autograd.grad(features["edge_trrosetta"].sum(), point)
    assert not features["edge_trrosetta_mask"].any() and torch.isfinite(gradient).all()
