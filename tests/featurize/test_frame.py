"""Frames against OpenFold (6MRR) and their definition, reflections, and neighbors in local frames."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from protgraph.featurize import build_graph
from protgraph.featurize.frames import axes
from protgraph.registry.component import component

F64 = torch.float64


def test_axes_equal_openfold(shared_reference):
    with np.load(shared_reference / "ipa_openfold" / "frames_6MRR.npz") as z:
        n, ca, c = (torch.from_numpy(z["in/N_CA_C"][:, k]) for k in range(3))
        expected = torch.from_numpy(z["out/R"])
    ours = axes(ca - n, c - ca)  # their from_3_points(N, CA, C): first axis from N to CA
    # OpenFold adds 1e-8 under the square root and stores rotations in float32
    assert (ours.mT - expected).abs().max() < 1e-7


def test_frames_equal_algorithm_21(proteins):
    graph = build_graph(proteins[0], ["residue_frame"])
    there = graph.backbone_mask[:, :3].all(1)
    n, ca, c = graph.backbone[there, :3].double().unbind(1)
    e1, e2, e3 = graph.frame[there].double().unbind(1)
    assert torch.allclose((c - ca) / (c - ca).norm(dim=1, keepdim=True), e1, atol=1e-6)
    assert torch.allclose(torch.linalg.cross(e1, e2), e3, atol=1e-6)
    assert (((n - ca) * e3).sum(1).abs() < 1e-5).all() and (((n - ca) * e2).sum(1) > 0).all()
    assert (graph.frame[~there] == 0).all()


def test_the_third_axis_of_a_mirror_image_is_not_the_mirrored_one():
    first, second = torch.randn(2, 20, 3, dtype=F64)
    frame, mirrored = axes(first, second), axes(-first, -second)
    torch.testing.assert_close(mirrored, frame * torch.tensor([-1, -1, 1], dtype=F64)[:, None])
    assert torch.allclose(torch.linalg.det(mirrored), torch.ones(20, dtype=F64))


def test_neighbors_are_in_the_frame_of_the_target(proteins):
    graph = build_graph(proteins[0], ["residue_frame", component("knn", k=8), "edge_direction", "edge_frame"])
    j, i = graph.edge_index
    frame = graph.frame
    assert torch.allclose(torch.einsum("ekx,ex->ek", frame[i], graph.edge_direction), graph.edge_local, atol=1e-6)
    # R_iᵀ R_j maps coordinates in the frame of j to coordinates in the frame of i
    relative = graph.edge_rotation.view(-1, 3, 3)
    local = torch.randn(len(j), 3)
    in_space = torch.einsum("ek,ekx->ex", local, frame[j])
    defined = (frame[j].abs().sum((1, 2)) > 0) & (frame[i].abs().sum((1, 2)) > 0)
    there = torch.einsum("ekx,ex->ek", frame[i], in_space)
    assert torch.allclose(torch.einsum("ekl,el->ek", relative, local)[defined], there[defined], atol=1e-5)


@pytest.mark.parametrize("second", [(2.0, 0, 0), (-1.0, 0, 0), (0.0, 0, 0)], ids=["along", "against", "coincident"])
def test_collinear_atoms_have_no_frame_and_no_gradient(second):
    first = torch.tensor([[1.0, 0, 0]]).requires_grad_()
    other = torch.tensor([second]).requires_grad_()
    frame = axes(first, other)
    frame.sum().backward()
    assert (frame == 0).all() and (first.grad == 0).all() and (other.grad == 0).all()
