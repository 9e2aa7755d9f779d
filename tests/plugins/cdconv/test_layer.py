"""``cdconv`` equals the equations of its paper, written as a loop over edges."""

from __future__ import annotations

import pytest
import torch
from protgraph_plugins.cdconv.layer import CDConv
from torch.nn.functional import leaky_relu

from protgraph.data.graph.fields import field

OFFSETS, RADIUS = 2, 8.0


@pytest.mark.parametrize("degree", [None, 3])
def test_layer_equals_the_equations(scene, specs, agree, float64, degree):
    s = scene(degree=degree)
    fields = {name: specs[name] for name in ("h", "edges", "edge_attr", "seq_pos", "chain")}
    layer = CDConv(fields | {"edge_dist": field("edge_dist")}, dim=6, kernels=4, offsets=OFFSETS, radius=RADIUS)
    distance = 10 * torch.rand(s.index.size(1), 1)
    inputs = [s.f["h"].requires_grad_(), s.f["edge_attr"].requires_grad_(), distance.requires_grad_()]
    seq_pos, chain = s.f["seq_pos"].tolist(), s.f["chain"].tolist()
    seen = set()

    def equations():
        sums = [torch.zeros(4, 12) for _ in s.f["h"]]
        for edge, (j, i) in enumerate(s.index.t().tolist()):
            offset = max(-OFFSETS, min(OFFSETS, seq_pos[j] - seq_pos[i]))
            kind = OFFSETS + offset if chain[i] == chain[j] else 2 * OFFSETS + 1
            along = abs(offset) / OFFSETS if chain[i] == chain[j] else 1.0
            seen.add(kind)
            kernel = leaky_relu(s.f["edge_attr"][edge] @ layer.weight[kind] + layer.bias[kind], 0.2)
            smooth = 0.5 - 0.5 * torch.tanh(16 * distance[edge] / RADIUS * along - 14)
            sums[i] = sums[i] + torch.outer(smooth * kernel, s.f["h"][j])
        return torch.stack(sums).flatten(1) @ layer.linear.weight.t()

    agree(lambda: layer(s.inputs(layer.fields, edge_dist=distance))["h"], equations, inputs, tol=1e-11)
    assert len(seen) >= 5
