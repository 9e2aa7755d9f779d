"""Layers of ViSNet equal PyG's network with the same weights, and refuse fields that do not fit."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch_geometric.nn.models import visnet as theirs

import protgraph as pg
from protgraph.data.graph.fields import FieldSpec, field
from protgraph.errors import OptionError, WiringError
from protgraph.ops import Edges
from tests.reference.visnet import load_visnet

CUTOFF = 6.0


@pytest.mark.parametrize(("lmax", "vertex"), [(1, False), (2, True)])
def test_network_equals_pyg_with_its_weights(lmax, vertex, float64, agree, monkeypatch):
    pos = (3 * torch.randn(9, 3)).requires_grad_()
    types = torch.randint(0, 10, (9,))
    near = (torch.cdist(pos.detach(), pos.detach()) < CUTOFF).fill_diagonal_(False)
    index = near.nonzero().t().flip(0)  # sorted by target
    # Their search needs a library that is not installed; it would also return self loops.
    monkeypatch.setattr(theirs, "radius_graph", lambda *_, **__: index)
    network = theirs.ViSNetBlock(
        lmax=lmax, num_heads=2, num_layers=3, hidden_channels=8, num_rbf=5, max_z=10, cutoff=CUTOFF, vertex=vertex
    )
    for module in network.modules():
        if isinstance(module, nn.Linear | nn.LayerNorm) and module.bias is not None:
            nn.init.normal_(module.bias)
    layers = load_visnet(network.state_dict(), lmax=lmax, heads=2, cutoff=CUTOFF)

    def ours():
        f = {"edges": Edges(index, 9), "edge_vec": pos[index[0]] - pos[index[1]]}
        f |= layers.embedding(f | {"h": torch.nn.functional.one_hot(types, 10).to(pos)})
        f["v"] = torch.zeros(9, 8 * (3 if lmax == 1 else 8))
        for block, update in zip(layers.blocks, [*layers.edges, None], strict=True):
            f |= block(f) | (update(f) if update is not None else {})
        return torch.cat([layers.norm(f["h"]), f["v"]], 1)

    def pyg():
        h, v = network(types, pos, torch.zeros(9, dtype=torch.long))
        degrees = [x.mT.flatten(1) for x in v.split([3, v.size(1) - 3], 1)]
        return torch.cat([h, *degrees], 1)

    agree(ours, pyg, [pos], tol=1e-10)


def test_fields_that_do_not_fit_are_errors():
    fields = {"h": FieldSpec("h", "node", "16x0e"), "edges": field("edges"), "edge_vec": field("edge_vec")}
    fields["edge_h"] = FieldSpec("edge_h", "edge", "16x0e")
    with pytest.raises(OptionError, match="heads=3"):
        pg.layers.create("visnet", fields, options={"heads": 3})
    with pytest.raises(WiringError, match=r"16x1o\+16x2e"):
        pg.layers.create("visnet", fields | {"v": FieldSpec("v", "node", "16x1o")}, options={"lmax": 2})
    with pytest.raises(WiringError, match="width 8"):
        pg.layers.create("visnet", fields | {"edge_h": FieldSpec("edge_h", "edge", "8x0e")})
