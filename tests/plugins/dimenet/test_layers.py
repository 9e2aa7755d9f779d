"""Layers of DimeNet equal PyG's networks with the same weights, and the basis its closed forms."""

from __future__ import annotations

import pytest
import torch
from protgraph_plugins.dimenet import LineGraph
from protgraph_plugins.dimenet.basis import SphericalBasis, spherical_bessel_zeros
from scipy.special import spherical_jn
from torch import nn
from torch_geometric.nn.models import dimenet as theirs

from protgraph.ops import Edges
from tests.reference.dimenet import load_dimenet

CUTOFF = 8.0
COMMON = {"hidden_channels": 8, "out_channels": 3, "num_blocks": 2, "num_spherical": 3, "num_radial": 4}
COMMON |= {"cutoff": CUTOFF, "output_initializer": "glorot_orthogonal"}
NETWORKS = {
    "DimeNet": lambda: theirs.DimeNet(num_bilinear=2, **COMMON),
    "DimeNetPlusPlus": lambda: theirs.DimeNetPlusPlus(int_emb_size=4, basis_emb_size=5, out_emb_channels=6, **COMMON),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_network_equals_pyg_with_its_weights(name, float64, agree, monkeypatch):
    pos = (4 * torch.randn(9, 3)).requires_grad_()
    types = torch.randint(0, 95, (9,))
    near = (torch.cdist(pos.detach(), pos.detach()) < CUTOFF).fill_diagonal_(False)
    index = near.nonzero().t().flip(0)  # sorted by target
    edges = Edges(index, 9)
    line = LineGraph()({"edges": edges})["line"]
    (first, second), (j, i) = line.index, index

    # PyG's searches need libraries that are not installed: it gets our edges and pairs of edges.
    monkeypatch.setattr(theirs, "radius_graph", lambda *_, **__: index)
    monkeypatch.setattr(theirs, "triplets", lambda *_, **__: (i, j, i[second], j[second], j[first], first, second))
    network = NETWORKS[name]()
    for module in network.modules():
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.normal_(module.bias)
    layers = load_dimenet(network.state_dict(), degrees=3, cutoff=CUTOFF)

    def ours():
        vec = pos[j] - pos[i]
        h = layers.embedding({"h": network.emb.emb(types), "edges": edges, "edge_vec": vec})["edge_h"]
        out = layers.outputs[0]({"edge_h": h, "edges": edges, "edge_vec": vec})["h"]
        for interaction, output in zip(layers.interactions, layers.outputs[1:], strict=True):
            h = interaction({"h": h, "edges": line, "node_vec": vec})["h"]
            out = out + output({"edge_h": h, "edges": edges, "edge_vec": vec})["h"]
        return out.sum(0)

    agree(ours, lambda: network(types, pos), [pos], tol=1e-10)


def test_zeros_are_those_of_spherical_bessel_functions():
    zeros = spherical_bessel_zeros(7, 6)
    assert zeros[0].tolist() == pytest.approx([3.14159265 * n for n in range(1, 7)], rel=1e-8)
    for degree in range(7):
        assert abs(spherical_jn(degree, zeros[degree])).max() < 1e-13
        assert (spherical_jn(degree, zeros[degree] - 1e-6) * spherical_jn(degree, zeros[degree] + 1e-6) < 0).all()


def test_basis_equals_scipy_from_a_twentieth_of_the_cutoff_on(float64):
    basis = SphericalBasis(7, 6)
    q = torch.linspace(0.05, 0.999, 40)[:, None]
    envelope = (1 - 28 * q**6 + 48 * q**7 - 21 * q**8) / q
    radial = basis.of_distance(q)
    for degree in range(7):
        expected = torch.from_numpy(spherical_jn(degree, (q * basis.zeros[degree]).numpy()))
        expected = expected * basis.scale[degree] * envelope
        assert (radial[:, degree] - expected).abs().max() < 1e-8 * expected.abs().max()
    assert basis.of_distance(torch.tensor([[1.0], [3.0]])).abs().max() == 0


def test_functions_of_angles_are_orthonormal(float64):
    cosine = torch.linspace(-1, 1, 100_001)[:, None]
    angular = SphericalBasis(5, 1).of_cosine(cosine)
    products = 2 * torch.pi * torch.einsum("tl,tm->tlm", angular, angular)
    torch.testing.assert_close(torch.trapezoid(products, cosine[:, :, None], dim=0), torch.eye(5), atol=1e-6, rtol=0)
