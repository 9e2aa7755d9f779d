"""Pointwise and merging layers (``linear``, ``mlp``, ``residual``, ``mean_probability``, …) against their formulas."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from protgraph.data.graph.fields import FieldSpec, field
from protgraph.errors import OptionError, WiringError
from protgraph.nn.layers.merge import GRU, Add, Concat, MeanProbability, Residual
from protgraph.nn.layers.pointwise import MLP, LayerNorm, Linear
from protgraph.nn.mlp import activation, mlp

VECTORS = FieldSpec("v", "node", "4x0e+2x1o")


def test_linear_and_mlp_are_their_formulas(specs):
    h = torch.randn(5, 12)
    layer = Linear({"h": specs["h"]}, dim=7)
    torch.testing.assert_close(layer({"h": h})["h"], h @ layer.linear.weight.t() + layer.linear.bias)
    layer = MLP({"h": specs["h"]})
    first, _, _, last = layer.mlp
    assert (first.out_features, last.out_features) == (48, 12)  # the transformer's: four times as wide inside
    torch.testing.assert_close(layer({"h": h})["h"], last(functional.gelu(first(h))))


def test_mlp_depth_counts_linear_maps(specs):
    widths = [(m.in_features, m.out_features) for m in MLP({"h": specs["h"]}, dim=3, hidden=8, depth=3).mlp[::3]]
    assert widths == [(12, 8), (8, 8), (8, 3)]
    assert len(MLP({"h": specs["h"]}, dim=3, depth=1).mlp) == 1


def test_layer_norm_has_mean_0_and_variance_1(specs):
    out = LayerNorm({"h": specs["h"]})({"h": 5 + 3 * torch.randn(50, 12)})["h"]
    torch.testing.assert_close(out.mean(1), torch.zeros(50), atol=1e-6, rtol=0)
    torch.testing.assert_close(out.var(1, unbiased=False), torch.ones(50), atol=1e-4, rtol=0)


def test_residual_is_its_formula(specs):
    layer = Residual({n: specs[n] for n in ("h", "update")}, act="silu")
    h, u = torch.randn(5, 12), torch.randn(5, 12)
    torch.testing.assert_close(layer({"h": h, "update": u})["h"], functional.layer_norm(h + functional.silu(u), (12,)))
    plain = Residual({n: specs[n] for n in ("h", "update")}, act="none", norm="none")
    assert torch.equal(plain({"h": h, "update": u})["h"], h + u)


def test_residual_drops_out_the_update_only(specs):
    layer = Residual({n: specs[n] for n in ("h", "update")}, dropout=1.0, norm="none")
    h = torch.randn(5, 12)
    assert torch.equal(layer({"h": h, "update": h})["h"], h)


def test_residual_does_not_modify_its_inputs(specs):
    layer = Residual({n: specs[n] for n in ("h", "update")})
    h, u = torch.randn(5, 12), torch.randn(5, 12)
    before = h.clone(), u.clone()
    layer({"h": h, "update": u})
    assert torch.equal(h, before[0]) and torch.equal(u, before[1])


def test_gru_is_torchs_cell(specs):
    layer = GRU({n: specs[n] for n in ("h", "update")})
    h, u = torch.randn(5, 12), torch.randn(5, 12)
    assert torch.equal(layer({"h": h, "update": u})["h"], layer.cell(u, h))


def test_add_and_concat_keep_irreps():
    both = {"v": VECTORS, "w": VECTORS.as_("w", chiral=True)}
    x, y = torch.randn(5, 10), torch.randn(5, 10)
    add, concat = Add(both), Concat(both)
    assert torch.equal(add({"v": x, "w": y})["h"], x + y)
    assert torch.equal(concat({"v": x, "w": y})["h"], torch.cat([x, y], 1))
    assert str(add.out["h"].o3) == "4x0e+2x1o" and str(concat.out["h"].o3) == "4x0e+2x1o+4x0e+2x1o"
    assert add.out["h"].chiral and concat.out["h"].chiral


def test_concat_joins_edge_features():
    layer = Concat({n: field(n) for n in ("edge_rbf", "edge_offset")})
    assert (layer.out["h"].level, layer.out["h"].dim) == ("edge", 82)


def test_unequal_fields_are_errors(specs):
    with pytest.raises(WiringError, match=r"8.*dim=12"):
        Residual({"h": specs["h"], "update": FieldSpec("m", "node", "8x0e")})
    with pytest.raises(WiringError, match="add"):
        Add({"h": specs["h"], "v": VECTORS})
    with pytest.raises(WiringError, match="'edge'"):
        Concat({"h": specs["h"], "e": specs["edge_attr"]})
    with pytest.raises(WiringError, match="'h'"):
        Concat({"h": specs["h"]})
    with pytest.raises(WiringError, match="'embed'"):
        Concat({"h": specs["h"], "aatype": specs["aatype"]})
    with pytest.raises(WiringError, match="'invariants'"):
        Residual({"h": VECTORS, "update": VECTORS})


def test_an_unknown_activation_is_an_error():
    with pytest.raises(OptionError, match="act='relo'.*'relu'"):
        activation("relo")


def test_a_perceptron_without_hidden_layers_is_linear():
    assert len(mlp([4, 2])) == 1


def test_mean_probability_is_that_of_one_or_two_logits():
    logits = torch.tensor([[0.5, -1.0, 80.0], [2.0, 0.0, 90.0]], dtype=torch.float64)  # (networks, nodes)
    expected = torch.sigmoid(logits).mean(0)[:, None]
    one = {name: FieldSpec(name, "node", "1x0e") for name in ("a", "b")}
    two = {name: FieldSpec(name, "node", "2x0e") for name in ("a", "b")}
    values_of_one = {name: x[:, None] for name, x in zip("ab", logits, strict=True)}
    values_of_two = {name: torch.stack([torch.ones(3), x + 1], 1) for name, x in zip("ab", logits, strict=True)}
    torch.testing.assert_close(MeanProbability(one)(values_of_one)["h"], expected)
    torch.testing.assert_close(MeanProbability(two)(values_of_two)["h"], expected)

    log_odds = MeanProbability(one, log_odds=True)(values_of_one)["h"]
    torch.testing.assert_close(log_odds[:2], torch.logit(expected[:2]))
    assert 80 < log_odds[2].item() < 81  # although the probability rounds to 1


def test_mean_probability_refuses_other_widths():
    with pytest.raises(WiringError, match="widths"):
        MeanProbability({"a": FieldSpec("a", "node", "1x0e"), "b": FieldSpec("b", "node", "2x0e")})
