"""``schnet`` equals PyG's interaction block (reference vectors and PyG itself); every neighbor has an effect."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from protgraph_plugins.schnet.layer import SchNet
from torch import nn
from torch_geometric.nn.models.schnet import GaussianSmearing, InteractionBlock

import protgraph as pg
from protgraph.data.graph.fields import field
from protgraph.errors import OptionError
from protgraph.ops import Edges
from protgraph.testing.symmetry import relative_error
from tests.reference.schnet import load_interaction_block

PARTS = {"filter.0": "mlp.0", "filter.1": "mlp.2", "lin1": "conv.lin1", "lin2": "conv.lin2", "lin": "lin"}


def given(specs, *names):
    return {"h": specs["h"], "edges": specs["edges"], "edge_dist": field("edge_dist"), **{n: specs[n] for n in names}}


def test_reference_state_gives_reference_numbers(shared_reference):
    for dtype, tol in ((torch.float64, 1e-10), (torch.float32, 1e-5)):
        path = shared_reference / "pyg_schnet_dimenet" / "schnet_interaction.npz"
        z = {k: torch.from_numpy(v) for k, v in np.load(path).items()}
        z = {k: v.to(dtype) if v.is_floating_point() else v for k, v in z.items()}
        layer = load_interaction_block({k[2:]: v for k, v in z.items() if k.startswith("w/")}, cutoff=12.0)
        order = z["in/edge_index"][1].argsort(stable=True)
        h, d = z["in/h"].requires_grad_(), z["mid/edge_weight"][order, None]
        out = layer({"h": h, "edges": Edges(z["in/edge_index"][:, order], len(h)), "edge_dist": d})["h"]
        (out.flatten() * torch.linspace(-1, 1, out.numel(), dtype=dtype)).sum().backward()
        assert relative_error(layer._smear(d), z["mid/gauss"][order]) <= tol
        assert relative_error(out, z["out/h"]) <= tol
        assert relative_error(h.grad, z["grad/h"]) <= tol
        for name, parameter in layer.named_parameters():
            part = name.rpartition(".")[0]
            assert relative_error(parameter.grad, z["grad/w/" + PARTS[part] + name.removeprefix(part)]) <= tol


@pytest.mark.parametrize("degree", [None, 3])
def test_layer_equals_pyg(scene, specs, agree, float64, degree):
    s = scene(degree=degree)
    theirs, smear = InteractionBlock(12, 10, 7, 9.0), GaussianSmearing(0.0, 9.0, 10)
    nn.init.normal_(theirs.conv.lin2.bias)
    ours = load_interaction_block(theirs.state_dict(), cutoff=9.0)
    h, d = s.f["h"].requires_grad_(), (9 * torch.rand(s.index.size(1), 1)).requires_grad_()
    agree(
        lambda: ours(s.inputs(ours.fields, h=h, edge_dist=d))["h"],
        lambda: theirs(h, s.index, d.flatten(), smear(d.flatten())),
        [h, d],
        tol=1e-12,
    )


@pytest.mark.parametrize("degree", [None, 3])
def test_filters_depend_on_edge_features_and_distance(scene, specs, agree, float64, degree):
    s = scene(degree=degree)
    layer = SchNet(given(specs, "edge_attr"), dim=12, filters=6, gaussians=5, cutoff=8.0)
    h, e, d = s.f["h"].requires_grad_(), s.f["edge_attr"].requires_grad_(), 10 * torch.rand(s.index.size(1), 1)

    def explicit():
        mu, (j, i) = torch.linspace(0, 8, 5), s.index
        x = torch.cat([torch.exp(-((d - mu) ** 2) / (2 * 2.0**2)), e], 1)
        weight = layer.filter[1]((layer.filter[0](x).exp() + 1).log() - math.log(2))
        weight = weight * torch.where(d < 8, (torch.cos(math.pi * d / 8) + 1) / 2, 0)
        summed = torch.zeros(s.num_nodes, 6).index_add(0, i, layer.lin1(h)[j] * weight)
        return layer.lin((layer.lin2(summed).exp() + 1).log() - math.log(2))

    f = s.inputs(layer.fields, edge_dist=d)
    agree(lambda: layer(f)["h"], explicit, [h, e, layer.filter[0].weight], tol=1e-11)


def test_neighbors_at_or_beyond_the_cutoff_have_no_effect(specs, float64):
    layer = SchNet(given(specs), dim=12, cutoff=8.0)
    h, edges = torch.randn(3, 12), Edges(torch.tensor([[1, 2, 0], [0, 0, 1]]), 3)
    near, far, none = (
        layer({"h": h, "edges": edges, "edge_dist": torch.tensor([[d], [d], [3.0]])})["h"] for d in (7.0, 8.0, 30.0)
    )
    alone = layer({"h": h, "edges": Edges(torch.tensor([[0], [1]]), 3), "edge_dist": torch.tensor([[3.0]])})["h"]
    assert not torch.allclose(near[0], alone[0])
    for silent in (far, none):
        torch.testing.assert_close(silent, alone, rtol=1e-13, atol=1e-15)


def test_each_of_100_neighbors_has_an_effect(specs, float64):
    layer = SchNet(given(specs), dim=12, cutoff=8.0)
    index = torch.stack([torch.arange(1, 101), torch.zeros(100, dtype=torch.long)])
    h, d = torch.randn(101, 12, requires_grad=True), 6 * torch.rand(100, 1)
    layer({"h": h, "edges": Edges(index, 101), "edge_dist": d})["h"][0].sum().backward()
    assert (h.grad[1:].abs().sum(1) > 0).all()


def test_invalid_options_are_errors(specs):
    with pytest.raises(OptionError, match="gaussians=1"):
        pg.layers.create("schnet", given(specs), options={"gaussians": 1})
    with pytest.raises(OptionError, match=r"cutoff=0\.0"):
        pg.layers.create("schnet", given(specs), options={"cutoff": 0.0})
