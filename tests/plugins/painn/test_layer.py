"""``painn`` equals equations 7–10 of its paper, written as loops over edges and nodes."""

from __future__ import annotations

import math

import pytest
import torch
from protgraph_plugins.painn.layer import PaiNN

import protgraph as pg
from protgraph.data.graph.fields import FieldSpec, field
from protgraph.errors import WiringError

CUTOFF = 3.0


def fields(specs, *names):
    vectors = FieldSpec("v", "node", "12x1o")
    return {"h": specs["h"], "edges": specs["edges"], "edge_vec": field("edge_vec")} | {
        name: {"v": vectors, "edge_attr": specs["edge_attr"]}[name] for name in names
    }


@pytest.mark.parametrize("names", [(), ("v", "edge_attr")], ids=["first_layer", "with_vectors_and_edge_features"])
@pytest.mark.parametrize("degree", [None, 3])
def test_layer_equals_the_equations(scene, specs, agree, float64, degree, names):
    s = scene(degree=degree)
    layer = PaiNN(fields(specs, *names), basis=4, cutoff=CUTOFF)
    s.f["edge_vec"], s.f["v"] = 1.5 * torch.randn(s.index.size(1), 3), torch.randn(s.num_nodes, 36)
    inputs = [s.f[name].requires_grad_() for name in ("h", "edge_vec", *names)]

    def ours():
        out = layer(s.inputs(layer.fields))
        return torch.cat([out["h"], out["v"]], 1)

    def equations():
        h = s.f["h"]
        v = s.f["v"].view(-1, 12, 3) if names else torch.zeros(s.num_nodes, 12, 3)
        scalars, vectors = [torch.zeros(12) for _ in h], [torch.zeros(12, 3) for _ in h]
        for edge, (j, i) in enumerate(s.index.t().tolist()):
            vec = s.f["edge_vec"][edge]
            d = vec.norm()
            if d >= CUTOFF:
                continue
            radial = torch.stack([torch.sin(n * math.pi / CUTOFF * d) / d for n in (1, 2, 3, 4)])
            features = torch.cat([radial, s.f["edge_attr"][edge]]) if names else radial
            weight = 0.5 * (torch.cos(math.pi * d / CUTOFF) + 1) * layer.filter(features)
            a, b, c = (layer.phi(h[j]) * weight).split(12)
            scalars[i] = scalars[i] + a
            vectors[i] = vectors[i] + v[j] * b[:, None] + c[:, None] * (vec / d)
        h, v = h + torch.stack(scalars), v + torch.stack(vectors)
        left, right = (torch.einsum("uw,nwx->nux", w, v) for w in layer.mix.weight.split(12))
        a, b, c = layer.psi(torch.cat([h, (right.pow(2).sum(2) + 1e-8).sqrt()], 1)).split(12, 1)
        return torch.cat([h + a + b * (left * right).sum(2), (v + c[..., None] * left).flatten(1)], 1)

    assert (s.f["edge_vec"].norm(dim=1) > CUTOFF).any()
    agree(ours, equations, inputs, tol=1e-11)


def test_as_many_vectors_as_scalars_are_needed(specs):
    with pytest.raises(WiringError, match="12x1o"):
        pg.layers.create("painn", fields(specs, "v") | {"v": FieldSpec("v", "node", "4x1o")})
