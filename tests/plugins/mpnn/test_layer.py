"""``mpnn`` equals message passing with explicit messages."""

from __future__ import annotations

import pytest
import torch
from protgraph_plugins.mpnn import MPNN
from torch import nn
from torch_geometric.nn import MessagePassing

from protgraph import layers
from protgraph.errors import OptionError, WiringError


class PlainMessagePassing(MessagePassing):
    """``M = W₄ relu(W [x_i, x_j, e_ij] + b) + b₄`` on every edge, with the weights of an MPNN layer."""

    def __init__(self, layer, aggregate):
        super().__init__(aggr=aggregate)
        self.layer = layer

    def forward(self, x, edge_index, e):
        return self.propagate(edge_index, x=x, e=e)

    def message(self, x_i, x_j, e):
        ours = self.layer
        parts = [ours.target.weight, ours.source.weight]
        inputs = [x_i, x_j]
        if ours.edge is not None:
            parts, inputs = [*parts, ours.edge.weight], [*inputs, e]
        z = nn.functional.linear(torch.cat(inputs, 1), torch.cat(parts, 1), ours.target.bias).relu()
        return ours.message(z)


@pytest.mark.parametrize("dtype, tol", [(torch.float64, 1e-12), (torch.float32, 1e-6)])
@pytest.mark.parametrize("degree", [None, 3])
@pytest.mark.parametrize("aggregate", ["sum", "mean", "max"])
@pytest.mark.parametrize("update", ["mlp", "gru"])
@pytest.mark.parametrize("with_edge", [True, False])
def test_mpnn_equals_messages_on_edges(scene, specs, agree, float64, dtype, tol, degree, aggregate, update, with_edge):
    s = scene(degree=degree)
    names = ("h", "edges", *(["edge_attr"] if with_edge else []))
    ours = MPNN({n: specs[n] for n in names}, dim=12, aggregate=aggregate, update=update).to(dtype)
    plain = PlainMessagePassing(ours, aggregate)
    h = s.f["h"].to(dtype).requires_grad_()
    e = s.f["edge_attr"].to(dtype).requires_grad_()

    def explicit():
        m = plain(h, s.index, e)
        return ours.update(m, h) if update == "gru" else ours.update(torch.cat([h, m], 1))

    wrt = [h, ours.source.weight, ours.message.weight, ours.message.bias, *([e] if with_edge else [])]
    agree(lambda: ours(s.inputs(names, h=h, edge_attr=e))["h"], explicit, wrt, tol=tol)


def test_invalid_options_are_errors(specs):
    with pytest.raises(WiringError, match="dim=12"):
        MPNN(specs, dim=16, update="gru")
    with pytest.raises(OptionError, match="aggregate='min'"):
        layers.create("mpnn", specs, options={"aggregate": "min"})
