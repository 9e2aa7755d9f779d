"""Geometric vector perceptrons equal the authors' code (reference vectors) and their formulas on every edge."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from protgraph_plugins.gvp.layers import GVPConv, GVPLayer
from protgraph_plugins.gvp.perceptron import (
    GVP,
    ScalarVector,
    ScalarVectorDropout,
    ScalarVectorNorm,
    ScalarVectorWidths,
)

from benchmarks.plain_geometric import PlainGVP, PlainGVPConv
from protgraph.data.graph.fields import FieldSpec, field
from protgraph.errors import OptionError, WiringError
from protgraph.ops import Edges
from protgraph.testing.symmetry import relative_error
from tests.reference.gvp import gvp_conv_from_reference

NODE, EDGE = ScalarVectorWidths(8, 4), ScalarVectorWidths(6, 2)
PARTS = {"first": "conv.message_func.0", "middle.0": "conv.message_func.1", "last": "conv.message_func.2"}
PARTS |= {"feed_forward": "ff_func", "norms": "norm"}


def flat(s, v):
    return torch.cat([s, v.flatten(1)], 1)


def fields_of(node=NODE, edge=EDGE):
    edge_irreps = edge.irreps if edge.vectors else f"{edge.scalars}x0e"
    return {
        "h": FieldSpec("h", "node", node.irreps),
        "edges": field("edges"),
        "edge_attr": FieldSpec("edge_attr", "edge", edge_irreps),
    }


def load(folder, name, dtype):
    z = {k: torch.from_numpy(v) for k, v in np.load(folder / "gvp" / f"{name}.npz").items()}
    return {k: v.to(dtype) if v.is_floating_point() else v for k, v in z.items()}


def weights(z):
    return {k[2:]: v for k, v in z.items() if k.startswith("w/") and v.numel()}


PRECISIONS = pytest.mark.parametrize("dtype, tol", [(torch.float64, 1e-10), (torch.float32, 1e-5)])


@PRECISIONS
@pytest.mark.parametrize("name, gate", [("gvp_plain", "norm"), ("gvp_vgate", "scalar")])
def test_perceptron_gives_reference_numbers(shared_reference, name, gate, dtype, tol):
    z = load(shared_reference, name, dtype)
    gvp = GVP(ScalarVectorWidths(6, 3), ScalarVectorWidths(8, 4), gate=gate).to(dtype)
    gvp.load_state_dict(weights(z))
    out = gvp(ScalarVector(z["in/s"], z["in/V"].mT))
    assert relative_error(out.s, z["out/s"]) <= tol
    assert relative_error(out.v.mT, z["out/V"]) <= tol


@PRECISIONS
def test_norm_gives_reference_numbers(shared_reference, dtype, tol):
    z = load(shared_reference, "layernorm", dtype)
    norm = ScalarVectorNorm(8).to(dtype)
    norm.load_state_dict(weights(z))
    out = norm(ScalarVector(z["in/s"], z["in/V"].mT))
    assert relative_error(out.s, z["out/s"]) <= tol
    assert relative_error(out.v.mT, z["out/V"]) <= tol


REFERENCES = {
    "convlayer_plain": (("relu", "sigmoid"), False),
    "convlayer_vgate_sigmoid": (("relu", "sigmoid"), False),
    "convlayer_novector": (("relu", None), False),
    "convlayer_ar": (("relu", "sigmoid"), True),
    "convlayer_ar_vgate": (("relu", None), True),
}


@PRECISIONS
@pytest.mark.parametrize("name", REFERENCES)
def test_reference_state_of_a_layer_gives_reference_numbers(shared_reference, name, dtype, tol):
    activations, autoregressive = REFERENCES[name]
    z = load(shared_reference, name, dtype)
    state = {k[2:]: v for k, v in z.items() if k.startswith("w/")}
    layer = gvp_conv_from_reference(state, activations=activations, autoregressive=autoregressive)
    inputs = {k: z[f"in/{k}"].requires_grad_() for k in ("s", "V", "ar_s", "ar_V") if f"in/{k}" in z}
    order = z["in/edge_index"][1].argsort(stable=True)  # ours are sorted by target
    n = len(z["in/s"])
    f = {"h": flat(inputs["s"], inputs["V"]), "edges": Edges(z["in/edge_index"][:, order], n)}
    f["edge_attr"] = flat(z["in/edge_s"], z["in/edge_V"])[order]
    if autoregressive:
        f |= {"encoding": flat(inputs["ar_s"], inputs["ar_V"]), "decoding_rank": torch.arange(n)}
    out = layer(f)["h"]
    out_s, out_v = out[:, :8], out[:, 8:].unflatten(1, (4, 3))
    loss = sum((x.flatten() * torch.linspace(-1, 1, x.numel(), dtype=dtype)).sum() for x in (out_s, out_v))
    loss.backward()
    assert relative_error(out_s, z["out/s"]) <= tol
    assert relative_error(out_v, z["out/V"]) <= tol
    for key, x in inputs.items():
        assert relative_error(x.grad, z[f"grad/{key}"]) <= tol
    for key, parameter in layer.named_parameters():
        part = next(p for p in PARTS if key.startswith(p + "."))
        if f"grad/w/{PARTS[part]}{key.removeprefix(part)}" in z:
            assert relative_error(parameter.grad, z["grad/w/" + PARTS[part] + key.removeprefix(part)]) <= tol


def test_an_encoding_needs_the_decoding_rank():
    with pytest.raises(WiringError, match="decoding_rank"):
        GVPConv(fields_of() | {"encoding": FieldSpec("encoding", "node", NODE.irreps)})


@pytest.mark.parametrize("degree", [None, 3])
@pytest.mark.parametrize("gate", ["scalar", "norm", "sigmoid_scalar"])
@pytest.mark.parametrize("depth", [2, 4])
@pytest.mark.parametrize("edge", [EDGE, ScalarVectorWidths(5, 0)])
def test_layer_equals_the_formula_on_every_edge(scene, agree, float64, degree, gate, depth, edge):
    scn = scene(degree=degree)
    layer = GVPConv(fields_of(edge=edge), depth=depth, gate=gate)
    n, e = scn.num_nodes, scn.index.size(1)
    s, v = torch.randn(n, 8, requires_grad=True), torch.randn(n, 4, 3, requires_grad=True)
    es, ev = torch.randn(e, edge.scalars, requires_grad=True), torch.randn(e, edge.vectors, 3, requires_grad=True)
    plain = PlainGVPConv(layer)
    wrt = [s, v, es, *([ev] if edge.vectors else []), *layer.parameters()]

    def ours():
        return layer({"h": flat(s, v), "edges": scn.edges(), "edge_attr": flat(es, ev)})["h"]

    agree(ours, lambda: flat(*plain(s, v, scn.index, es, ev)), wrt, tol=1e-11)


def test_embedding_joins_fields_in_their_order(float64):
    fields = {
        "s": FieldSpec("s", "node", "5x0e"),
        "orientation": field("orientation"),
        "m": FieldSpec("m", "node", "2x0e+1x1o"),
    }
    layer = GVPLayer(fields, irreps="7x0e+3x1o", act="relu", norm=False)
    s, orientation, m = torch.randn(6, 5), torch.randn(6, 2, 3), torch.randn(6, 5)
    got = layer({"s": s, "orientation": orientation, "m": m})["h"]
    vectors = torch.cat([orientation, m[:, None, 2:]], 1)
    want = flat(*PlainGVP(layer.gvp)(torch.cat([s, m[:, :2]], 1), vectors))
    torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-13)
    assert layer.out["h"].irreps == "7x0e+3x1o" and not layer.out["h"].chiral


def test_an_embedding_of_one_vector_keeps_its_length(float64):
    fields = {"h": FieldSpec("h", "node", "5x0e"), "v": FieldSpec("v", "node", "1x1o")}
    h, v = torch.randn(6, 5), torch.randn(6, 3)
    for count, kept in ((1, True), (2, False)):
        layer = GVPLayer(fields, irreps=f"7x0e+{count}x1o")
        out, bare = layer({"h": h, "v": v})["h"], layer.gvp(ScalarVector(h, v[:, :, None]))
        assert torch.allclose(out[:, :7].mean(1), torch.zeros(6), atol=1e-12)
        assert torch.allclose(out[:, 7:], bare.v.mT.flatten(1)) == kept


def test_outputs_of_pseudoscalars_or_chiral_vectors_are_chiral():
    h = FieldSpec("h", "node", "5x0e")
    assert GVPLayer({"dihedral": field("dihedral"), "orientation": field("orientation")}).out["h"].chiral
    assert GVPLayer({"h": h, "sidechain_direction": field("sidechain_direction")}).out["h"].chiral
    assert GVPLayer({"m": FieldSpec("m", "node", "2x0e+1x0o+1x1o")}).out["h"].chiral
    assert not GVPLayer({"h": h, "orientation": field("orientation")}).out["h"].chiral


def test_dropout_leaves_out_whole_vectors():
    torch.manual_seed(0)
    drop = ScalarVectorDropout(0.5)
    out = drop(ScalarVector(torch.ones(50, 8), torch.ones(50, 3, 4)))
    assert set(out.s.unique().tolist()) == set(out.v.unique().tolist()) == {0.0, 2.0}
    assert (out.v == out.v[:, :1]).all()
    same = ScalarVector(torch.ones(2, 8), torch.ones(2, 3, 4))
    assert drop.eval()(same) is same


@pytest.mark.parametrize(
    ("inputs", "outputs"), [((6, 3), (8, 0)), ((6, 0), (8, 0)), ((6, 0), (8, 2)), ((6, 3), (8, 2))]
)
def test_perceptrons_without_vectors_and_with_a_hidden_width_equal_the_authors_formula(float64, inputs, outputs):
    """``h_dim`` and numbers of vectors of 0, as in ``gvp.GVP``, with parameters of the same names and shapes."""
    gvp = GVP(ScalarVectorWidths(*inputs), ScalarVectorWidths(*outputs), hidden=5)
    shapes = {"ws.weight": (8, 11 if inputs[1] else 6), "ws.bias": (8,)}
    if inputs[1]:
        shapes["wh.weight"] = (5, 3)
    if inputs[1] and outputs[1]:
        shapes |= {"wv.weight": (2, 5), "wsv.weight": (2, 8), "wsv.bias": (2,)}
    assert {name: tuple(p.shape) for name, p in gvp.named_parameters()} == shapes
    s, v = torch.randn(4, 6), torch.randn(4, inputs[1], 3)
    out = gvp(ScalarVector(s, v.mT))
    expected_v = torch.zeros(4, outputs[1], 3)
    if inputs[1]:
        hidden = torch.einsum("hv,nvx->nhx", gvp.wh.weight, v)
        s = torch.cat([s, hidden.norm(dim=2)], 1)
    s = s @ gvp.ws.weight.t() + gvp.ws.bias
    if inputs[1] and outputs[1]:
        gate = (s @ gvp.wsv.weight.t() + gvp.wsv.bias).sigmoid()
        expected_v = gate[:, :, None] * torch.einsum("vh,nhx->nvx", gvp.wv.weight, hidden)
    torch.testing.assert_close(out.s, s.relu())
    torch.testing.assert_close(out.v.mT, expected_v)


def test_the_layer_maps_scalars_alone(float64):
    layer = GVPLayer({"h": FieldSpec("h", "node", "6x0e")}, irreps="8x0e")
    assert layer.out["h"].irreps == "8x0e" and layer({"h": torch.randn(4, 6)})["h"].shape == (4, 8)
    layer = GVPLayer({"h": FieldSpec("h", "node", "6x0e+2x1o")}, irreps="8x0e", hidden=3)
    assert layer({"h": torch.randn(4, 12)})["h"].shape == (4, 8)
    with pytest.raises(WiringError, match="2x1o"):
        GVPLayer({"h": FieldSpec("h", "node", "6x0e")}, irreps="8x0e+2x1o")


def test_invalid_fields_and_options_are_errors():
    with pytest.raises(WiringError, match=r"'h'.*4x1o\+8x0e"):
        GVPConv(fields_of() | {"h": FieldSpec("h", "node", "4x1o+8x0e")})
    with pytest.raises(OptionError, match="depth=1"):
        GVPConv(fields_of(), depth=1)
    with pytest.raises(WiringError, match="aatype"):
        GVPLayer({"aatype": field("aatype"), "orientation": field("orientation")})
    with pytest.raises(WiringError, match="gvp"):
        GVPLayer({"orientation": field("orientation")})
    with pytest.raises(WiringError, match="2x2e"):
        GVPLayer({"h": FieldSpec("h", "node", "4x0e+2x1o+2x2e")})
