"""``equiformer`` equals the equations of its paper with e3nn's tensor products on each edge."""

from __future__ import annotations

import math

import pytest
import torch
from e3nn import o3
from protgraph_plugins.equiformer.layers import EquiformerAttention

import protgraph as pg
from protgraph.data.graph.fields import FieldSpec, field
from protgraph.errors import OptionError

IRREPS = o3.Irreps("8x0e+4x1o")
HARMONICS = o3.Irreps("0e+1o")


def product(module, irreps_in, irreps_out, x, direction, e):
    """Compute a message with e3nn: a depth-wise product per path, a weight per channel, then the linear maps."""
    y = o3.spherical_harmonics(HARMONICS, direction, normalize=True, normalization="component")
    weights = module.weights(module.hidden(e)).split([p.channels for p in module.product.paths], 1)
    out = [torch.zeros(len(x), ir.dim, mul) for mul, ir in irreps_out]
    for path, weight, linear in zip(module.product.paths, weights, module.maps, strict=True):
        block, harmonic, ir = irreps_in[path.i], HARMONICS[path.s], irreps_out[path.o].ir
        coupling = o3.wigner_3j(block.ir.l, harmonic.ir.l, ir.l).to(x) * math.sqrt(ir.dim)
        source = x[:, irreps_in.slices()[path.i]].unflatten(1, (block.mul, block.ir.dim))
        z = torch.einsum("eui,ej,ijk,eu->eku", source, y[:, HARMONICS.slices()[path.s]], coupling, weight)
        out[path.o] = out[path.o] + z @ linear
    out[0] = out[0] + module.biases[0]
    return torch.cat([block.mT.flatten(1) for block in out], 1)


@pytest.mark.parametrize("degree", [None, 3])
def test_layer_equals_the_equations(scene, specs, agree, float64, degree):
    s = scene(degree=degree)
    fields = {"h": FieldSpec("h", "node", str(IRREPS)), "edges": specs["edges"], "edge_vec": field("edge_vec")}
    layer = EquiformerAttention(fields | {"edge_attr": specs["edge_attr"]}, heads=2, alpha=3, radial=7)
    torch.nn.init.normal_(layer.message.biases[0])
    h = torch.randn(s.num_nodes, IRREPS.dim, requires_grad=True)
    vec = torch.randn(s.index.size(1), 3, requires_grad=True)
    (j, i), e = s.index, s.f["edge_attr"].requires_grad_()

    def equations():
        x = layer.target({"h": h})["h"][i] + layer.source({"h": h})["h"][j]
        middle = o3.Irreps(f"{6 + 8 + 4}x0e+4x1o")  # attention, gated scalars, gates and vectors
        f = product(layer.message, IRREPS, middle, x, vec, e)
        a = f[:, :6].unflatten(1, (2, 3))
        a = 0.6 * a + 0.4 * a * (2 * a.sigmoid() - 1)
        logits = torch.einsum("eha,ha->eh", a, layer.logit).exp()
        weight = logits / torch.zeros(s.num_nodes, 2).index_add(0, i, logits)[i]
        v = product(layer.value, IRREPS, IRREPS, layer.gate(f[:, 6:]), vec, e)
        scalars, vectors = v[:, :8] * weight.repeat_interleave(4, 1), v[:, 8:] * weight.repeat_interleave(6, 1)
        summed = torch.zeros(s.num_nodes, IRREPS.dim).index_add(0, i, torch.cat([scalars, vectors], 1))
        return layer.out_linear({"h": summed})["h"]

    agree(lambda: layer(s.inputs(layer.fields, h=h, edge_vec=vec))["h"], equations, [h, vec, e], tol=1e-10)


def test_heads_divide_the_channels_of_each_irrep(specs):
    fields = {"h": FieldSpec("h", "node", "8x0e+3x1o"), "edges": specs["edges"], "edge_vec": field("edge_vec")}
    with pytest.raises(OptionError, match="heads=4"):
        pg.layers.create("equiformer", fields)
