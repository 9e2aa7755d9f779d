"""``pyg_conv`` runs PyG's convolutions by class name."""

from __future__ import annotations

import pytest
import torch
from torch_geometric import nn as pyg

from protgraph.data.graph.fields import field
from protgraph.errors import OptionError, UnknownNameError, WiringError
from protgraph.nn.layers.pyg_conv import PygConv


def given(specs, *more):
    return {n: specs[n] for n in ("h", "edges", *more)}


def test_is_the_convolution_itself(scene, specs):
    s = scene()
    layer = PygConv(given(specs), conv="SAGEConv", dim=7, options={"aggr": "max"})
    theirs = pyg.SAGEConv(12, 7, aggr="max")
    theirs.load_state_dict(layer.conv.state_dict())
    assert torch.equal(layer(s.inputs(layer.fields))["h"], theirs(s.f["h"], s.index))
    assert layer.out["h"].irreps == "7x0e"


@pytest.mark.parametrize(
    "conv, more, options, width",
    [
        ("GCNConv", ["edge_weight"], {}, 8),
        ("GraphConv", ["edge_weight"], {"aggr": "mean"}, 8),
        ("GATv2Conv", ["edge_attr"], {"heads": 2}, 16),
        ("TransformerConv", ["edge_attr"], {"heads": 2, "concat": False}, 8),
        ("GENConv", ["edge_attr"], {}, 8),
        ("GeneralConv", [], {}, 8),
        ("ResGatedGraphConv", ["edge_attr"], {}, 8),
        ("GMMConv", ["edge_attr"], {"dim": 5, "kernel_size": 2}, 8),
        ("ChebConv", [], {"K": 2}, 8),
        ("LEConv", [], {}, 8),
        ("ARMAConv", [], {}, 8),
        ("SuperGATConv", [], {}, 8),
        ("GINConv", [], {"nn": [12, 16, 9]}, 9),
        ("EdgeConv", [], {"nn": [24, 9]}, 9),
        ("NNConv", ["edge_attr"], {"nn": [5, 96]}, 8),
    ],
)
def test_many_convolutions_run(scene, specs, conv, more, options, width):
    s = scene()
    layer = PygConv(given(specs, *more), conv=conv, dim=8, options=options)
    out = layer(s.inputs(layer.fields))["h"]
    assert out.shape == (s.num_nodes, width) == (s.num_nodes, layer.out["h"].dim)
    assert layer.training and layer.conv.training


def test_positions_reach_a_convolution_that_takes_them(scene, specs):
    s = scene()
    layer = PygConv({**given(specs), "pos": field("pos")}, conv="PointTransformerConv", dim=8)
    s.f["pos"] = torch.randn(s.num_nodes, 3)
    assert layer(s.inputs(layer.fields))["h"].shape == (s.num_nodes, 8)


def test_unknown_names_and_options_are_errors(specs):
    with pytest.raises(UnknownNameError, match="'SAGConv'.*'SAGEConv'"):
        PygConv(given(specs), conv="SAGConv")
    with pytest.raises(OptionError, match="SAGEConv.*'dims'.*aggr, normalize"):
        PygConv(given(specs), conv="SAGEConv", options={"dims": 3})
    with pytest.raises(OptionError, match="'out_channels'.* dim"):
        PygConv(given(specs), conv="SAGEConv", options={"out_channels": 8})
    with pytest.raises(OptionError, match="GINConv needs nn"):
        PygConv(given(specs), conv="GINConv")
    with pytest.raises(WiringError, match=r"GINConv.*RuntimeError: .*shapes"):
        PygConv(given(specs), conv="GINConv", options={"nn": [13, 8]})
    with pytest.raises(WiringError, match="'edge_attr'"):
        PygConv(given(specs, "edge_attr"), conv="SAGEConv")
    with pytest.raises(WiringError, match="PointTransformerConv.*pos"):
        PygConv(given(specs), conv="PointTransformerConv")
