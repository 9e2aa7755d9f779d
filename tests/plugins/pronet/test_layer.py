"""``pronet`` equals the equations of its paper, with angles from coordinates by atan2."""

from __future__ import annotations

import math

import pytest
import torch
from protgraph_plugins.dimenet import SphericalBasis
from protgraph_plugins.pronet.layer import ProNet
from torch.nn.functional import silu

from protgraph.data.graph.fields import field
from protgraph.ops import Edges, unit_or_zero

CUTOFF, RADIAL = 30.0, 3


def torsion_cosine(a, b, c, d):
    """Return the cosine of the torsion a-b-c-d."""
    first, second = torch.linalg.cross(b - a, c - b), torch.linalg.cross(c - b, d - c)
    sine = torch.linalg.cross(first, second) @ (c - b) / (c - b).norm()
    return torch.cos(torch.atan2(sine, first @ second))


def polar_angles(pos, i, j):
    """Return θ and φ of j at i, as the authors' program computes them."""
    vec, previous, following = pos[j] - pos[i], pos[i - 1] - pos[i], pos[i + 1] - pos[i]
    theta = torch.atan2(torch.linalg.cross(vec, previous).norm(), vec @ previous)
    planes = torch.linalg.cross(previous, following), torch.linalg.cross(previous, vec)
    sine = torch.linalg.cross(*planes) @ previous / previous.norm()
    return float(theta), float(torch.atan2(sine, planes[0] @ planes[1]))


def test_layer_equals_the_equations(specs, float64):
    n = 8
    pos = torch.cumsum(torch.randn(n, 3) + 2, 0)
    inner = range(1, n - 1)  # residues with both neighbors along the chain
    pairs = [(j, i) for i in inner for j in inner if i != j]
    edges = Edges(torch.tensor(pairs).t(), n)
    fields = {name: specs[name] for name in ("h", "edges", "edge_attr", "seq_pos", "chain")}
    fields |= {name: field(name) for name in ("edge_vec", "orientation")}
    layer = ProNet(fields, dim=6, radial=RADIAL, cutoff=CUTOFF)
    h, e, basis = torch.randn(n, 12), torch.randn(len(pairs), 5), SphericalBasis(2, RADIAL)
    along = unit_or_zero(pos[1:] - pos[:-1])
    zero = torch.zeros(1, 3)
    orientation = torch.stack([torch.cat([along, zero]), torch.cat([zero, -along])], 1)
    source, target = edges.index
    f = {"h": h, "edges": edges, "edge_attr": e, "edge_vec": pos[source] - pos[target], "orientation": orientation}
    f |= {"seq_pos": torch.arange(n), "chain": torch.zeros(n, dtype=torch.long)}

    polar, torsions = [], []
    for j, i in pairs:
        radial = basis.of_distance((pos[j] - pos[i]).norm().view(1, 1) / CUTOFF)[0]
        theta, phi = polar_angles(pos, i, j)
        harmonics = [math.sin(theta) * math.cos(phi), math.sin(theta) * math.sin(phi), math.cos(theta)]
        of_degree_1 = [math.sqrt(3 / (4 * math.pi)) * y * radial[1] for y in harmonics]
        polar.append(torch.cat([math.sqrt(1 / (4 * math.pi)) * radial[0], *of_degree_1]))
        beside_i, beside_j = i - 1 if j != i - 1 else i + 1, j - 1 if i != j - 1 else j + 1
        cosine = torsion_cosine(pos[beside_i], pos[i], pos[j], pos[beside_j])
        torsions.append((radial * basis.of_cosine(cosine.view(1, 1)).view(2, 1)).flatten())
    x = silu(layer.lin1(h))
    terms = []
    for conv, feature in zip(layer.convs, (torch.stack(polar), torch.stack(torsions), e), strict=True):
        sums = torch.zeros(n, 6).index_add(0, target, conv.filter(feature) * x[source])
        terms.append(silu(conv.linear(conv.neighbors(sums) + conv.own(x))))
    joined = silu(layer.join(torch.cat(terms, 1))) + silu(layer.lin2(h))
    expected = layer.last(silu(layer.hidden(joined)))
    torch.testing.assert_close(layer(f)["h"], expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_only_mirror_images_change_the_output(specs, float64, sign):
    n = 6
    pos, q = torch.cumsum(torch.randn(n, 3) + 2, 0), torch.linalg.qr(torch.randn(3, 3)).Q
    q = q * torch.linalg.det(q) * sign
    index = torch.tensor([(j, i) for i in range(n) for j in range(n) if i != j]).t()
    fields = {name: specs[name] for name in ("h", "edges", "edge_attr", "seq_pos", "chain")}
    layer = ProNet(fields | {name: field(name) for name in ("edge_vec", "orientation")}, dim=6, cutoff=CUTOFF)
    f = {"h": torch.randn(n, 12), "edges": Edges(index, n), "edge_attr": torch.randn(index.size(1), 5)}
    f |= {"seq_pos": torch.arange(n), "chain": torch.zeros(n, dtype=torch.long)}
    outputs = []
    for moved in (pos, pos @ q):
        along, zero = unit_or_zero(moved[1:] - moved[:-1]), torch.zeros(1, 3)
        orientation = torch.stack([torch.cat([along, zero]), torch.cat([zero, -along])], 1)
        f |= {"edge_vec": moved[index[0]] - moved[index[1]], "orientation": orientation}
        outputs.append(layer(dict(f, edges=Edges(index, n)))["h"])
    assert torch.allclose(*outputs, rtol=1e-9) == (sign > 0)
