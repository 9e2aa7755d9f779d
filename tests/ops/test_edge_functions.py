"""Radial functions with a cosine cutoff equal PyG's."""

from __future__ import annotations

import torch
from torch_geometric.nn.models.visnet import CosineCutoff, ExpNormalSmearing

from protgraph.ops import ExponentialBasis, cosine_cutoff


def test_functions_of_the_distance_equal_pyg_on_both_sides_of_the_cutoff(float64):
    distance = torch.linspace(0, 9, 50)
    assert torch.equal(cosine_cutoff(torch.tensor([[0.0], [6.0]]), 6.0), torch.tensor([[1.0], [0.0]]))
    torch.testing.assert_close(cosine_cutoff(distance, 6.0), CosineCutoff(6.0)(distance))
    theirs = ExpNormalSmearing(6.0, 8, trainable=False)(distance)
    assert theirs.max() > 0.5
    torch.testing.assert_close(ExponentialBasis(8, 6.0)(distance[:, None]), theirs)
