"""Bessel basis: formula, cutoff and limit at zero distance."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.special import spherical_jn

from protgraph.featurize.edge_features import EdgeBessel


def basis(distance: torch.Tensor, **options) -> torch.Tensor:
    return EdgeBessel(**options)({"edge_dist": distance.view(-1, 1)})["edge_bessel"]


def test_waves_are_spherical_bessel_functions(float64):
    d = torch.linspace(0.1, 9.9, 50)
    features = basis(d, bins=4, cutoff=10.0)
    u = 1 - 28 * (d / 10) ** 6 + 48 * (d / 10) ** 7 - 21 * (d / 10) ** 8
    for n in range(1, 5):
        k = n * math.pi / 10
        expected = math.sqrt(2 / 10) * k * torch.from_numpy(spherical_jn(0, k * d.numpy())) * u
        assert torch.allclose(features[:, n - 1], expected, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("envelope", [2, 5, 6])
def test_value_and_two_derivatives_are_zero_at_the_cutoff(float64, envelope):
    d = torch.tensor([8.0 - 1e-4], requires_grad=True)
    value = basis(d, bins=3, cutoff=8.0, envelope=envelope).sum()
    (first,) = torch.autograd.grad(value, d, create_graph=True)
    (second,) = torch.autograd.grad(first, d)
    assert abs(value) < 1e-10 and abs(first) < 1e-6 and abs(second) < 1e-2
    assert not basis(torch.tensor([8.0, 9.0, 100.0]), cutoff=8.0).any()


def test_coincident_nodes_have_the_limit_and_a_gradient(float64):
    d = torch.zeros(1, requires_grad=True)
    features = basis(d, bins=5, cutoff=10.0)
    assert features[0].tolist() == pytest.approx([math.sqrt(0.2) * n * math.pi / 10 for n in range(1, 6)])
    (gradient,) = torch.autograd.grad(features.sum(), d)
    assert gradient.item() == 0


def test_the_number_of_functions_is_the_width():
    assert EdgeBessel(bins=8).out["edge_bessel"].irreps == "8x0e"
