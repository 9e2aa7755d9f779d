"""Layers of TensorNet equal the equations of their paper, written with matrices and loops over edges."""

from __future__ import annotations

import pytest
import torch
from e3nn import o3
from protgraph_plugins.tensornet.layers import TensorNet, TensorNetEmbedding, component_matrices
from torch.nn.functional import silu

import protgraph as pg
from protgraph.data.graph.fields import FieldSpec, field
from protgraph.errors import WiringError
from protgraph.ops import cosine_cutoff

DIM, CUTOFF = 4, 6.0
IRREPS = f"{DIM}x0e+{DIM}x1o+{DIM}x2e"


def matrices_of(h):
    """Return ``(N, C, 3, 3)`` of features in the layout of e3nn."""
    parts = [part.unflatten(1, (DIM, -1)) for part in h.split([DIM, 3 * DIM, 5 * DIM], 1)]
    return torch.einsum("ncm,mij->ncij", torch.cat(parts, 2), component_matrices())


def flat(x):
    """Return the layout of e3nn of ``(N, C, 3, 3)``."""
    components = torch.einsum("ncij,mij->ncm", x, component_matrices()).split([1, 3, 5], 2)
    return torch.cat([part.flatten(1) for part in components], 1)


def parts_of(x):
    """Split matrices into their multiple of 1, antisymmetric and symmetric traceless part."""
    one = x.diagonal(dim1=-2, dim2=-1).mean(-1)[..., None, None] * torch.eye(3)
    return one, (x - x.mT) / 2, (x + x.mT) / 2 - one


def linear(maps, x):
    """Map the channels of each part."""
    mapped = [torch.einsum("dc,ncij->ndij", m.weight, part) for m, part in zip(maps.maps, parts_of(x), strict=True)]
    return sum(mapped)


def test_components_rotate_as_irreps(float64):
    q, x = o3.rand_matrix(), torch.randn(9)
    matrices = component_matrices()
    torch.testing.assert_close(torch.einsum("mij,nij->mn", matrices, matrices), torch.eye(9))
    rotated = torch.einsum("mij,ij->m", matrices, q @ torch.einsum("m,mij->ij", x, matrices) @ q.T)
    torch.testing.assert_close(rotated, o3.Irreps("0e+1o+2e").D_from_matrix(q) @ x)


@pytest.mark.parametrize("degree", [None, 3])
def test_embedding_equals_the_equations(scene, specs, agree, float64, degree):
    s = scene(degree=degree)
    fields = {"h": specs["h"], "edges": specs["edges"], "edge_vec": field("edge_vec"), "edge_attr": specs["edge_attr"]}
    layer = TensorNetEmbedding(fields, dim=DIM, basis=5, cutoff=CUTOFF)
    vec = (3 * torch.randn(s.index.size(1), 3)).requires_grad_()
    inputs = [s.f["h"].requires_grad_(), s.f["edge_attr"].requires_grad_(), vec]

    def equations():
        x = [torch.zeros(DIM, 3, 3) for _ in s.f["h"]]
        for edge, (j, i) in enumerate(s.index.t().tolist()):
            d, r = vec[edge].norm(), vec[edge] / vec[edge].norm()
            e = torch.cat([layer.radial(d.view(1, 1))[0], s.f["edge_attr"][edge]])
            z = layer.target(s.f["h"][i]) + layer.source(s.f["h"][j])
            one, skew, symmetric = (layer.filter(e) * cosine_cutoff(d, CUTOFF)).split(DIM)
            zero = torch.zeros(())
            cross = torch.stack([zero, -r[2], r[1], r[2], zero, -r[0], -r[1], r[0], zero]).view(3, 3)
            x[i] = x[i] + (z * one)[:, None, None] * torch.eye(3) + (z * skew)[:, None, None] * cross
            x[i] = x[i] + (z * symmetric)[:, None, None] * (torch.outer(r, r) - torch.eye(3) / 3)
        x = torch.stack(x)
        factors = layer.scale(layer.norm(x.square().sum((2, 3)))).unflatten(1, (DIM, 3))
        scaled = [part * factors[:, :, k, None, None] for k, part in enumerate(parts_of(linear(layer.linear, x)))]
        return flat(sum(scaled))

    agree(lambda: layer(s.inputs(fields, edge_vec=vec))["h"], equations, inputs, tol=1e-11)


@pytest.mark.parametrize("degree", [None, 3])
def test_interaction_equals_the_equations(scene, specs, agree, float64, degree):
    s = scene(degree=degree)
    fields = {"h": FieldSpec("h", "node", IRREPS), "edges": specs["edges"], "edge_vec": field("edge_vec")}
    layer = TensorNet(fields, basis=5, cutoff=CUTOFF)
    h = torch.randn(s.num_nodes, 9 * DIM, requires_grad=True)
    vec = (3 * torch.randn(s.index.size(1), 3)).requires_grad_()

    def equations():
        x = matrices_of(h)
        x = x / (x.square().sum((2, 3), keepdim=True) + 1)
        y = linear(layer.linear, x)
        parts = parts_of(y)
        neighbors = [torch.zeros(DIM, 3, 3) for _ in h]
        for edge, (j, i) in enumerate(s.index.t().tolist()):
            d = vec[edge].norm()
            weight = layer.radial(d.view(1, 1))[0]
            for dense in layer.filter:
                weight = silu(dense(weight))
            weight = cosine_cutoff(d, CUTOFF) * weight.view(DIM, 3)
            for k, part in enumerate(parts):
                neighbors[i] = neighbors[i] + weight[:, k, None, None] * part[j]
        product = y @ torch.stack(neighbors)
        product = product + torch.stack(neighbors) @ y
        change = linear(layer.last, product / (product.square().sum((2, 3), keepdim=True) + 1))
        return flat(x + change + change @ change)

    agree(lambda: layer(s.inputs(fields, h=h, edge_vec=vec))["h"], equations, [h, vec], tol=1e-11)


def test_parts_of_unequal_number_are_errors(specs):
    fields = {"h": FieldSpec("h", "node", "4x0e+2x1o"), "edges": specs["edges"], "edge_vec": field("edge_vec")}
    with pytest.raises(WiringError, match="tensornet_embed"):
        pg.layers.create("tensornet", fields)
