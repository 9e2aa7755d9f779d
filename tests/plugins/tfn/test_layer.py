"""The tensor field network layer against e3nn, geometric-gnn-dojo's numbers, and its symmetry."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from e3nn import o3
from protgraph_plugins.tfn import TFN

from benchmarks.plain_steerable import PlainTFN
from protgraph import layers
from protgraph.data.graph.fields import FieldSpec, field
from protgraph.errors import OptionError, WiringError
from protgraph.nn.irreps import Gate
from protgraph.ops import BesselBasis, Edges
from protgraph.testing.symmetry import act, random_rotations, relative_error
from tests.reference.tfn import load_tensor_product_conv

F64 = torch.float64


def make_fields(irreps: str, edge_attr: int = 0) -> dict[str, FieldSpec]:
    fields = {"h": FieldSpec("h", "node", irreps), "edge_vec": field("edge_vec"), "edges": field("edges")}
    return fields | ({"edge_attr": FieldSpec("edge_attr", "edge", f"{edge_attr}x0e")} if edge_attr else {})


def random_inputs(layer: TFN, *, n: int = 9, k: int = 4, constant: bool = True, seed: int = 0) -> dict:
    g = torch.Generator().manual_seed(seed)
    source = torch.stack([torch.randperm(n - 1, generator=g)[:k] for _ in range(n)])
    source = source + (source >= torch.arange(n)[:, None])
    index = torch.stack([source.flatten(), torch.arange(n).repeat_interleave(k)])
    if not constant:
        index = index[:, torch.rand(n * k, generator=g) < 0.7]
    pos = 4 * torch.randn(n, 3, generator=g, dtype=F64)
    f = {"h": torch.randn(n, layer.fields["h"].dim, generator=g, dtype=F64), "pos": pos}
    f["edges"] = Edges(index, n, degree=k if constant else None)
    f["edge_vec"] = pos[index[0]] - pos[index[1]]
    if "edge_attr" in layer.fields:
        f["edge_attr"] = torch.rand(index.size(1), layer.fields["edge_attr"].dim, generator=g, dtype=F64)
    return f


DOJO = {
    "conv": ("4x0e+2x1o+1x2e", "3x0e+2x1o+1x2e", "sum", False),
    "conv_mean": ("4x0e", "3x0e+2x1o", "mean", False),
    "conv_gate": ("4x0e+2x1o+1x2e", "3x0e+2x1o+1x2e", "sum", True),
}


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize("case", DOJO)
def test_full_mode_equals_geometric_gnn_dojo(shared_reference, case, dtype, tolerance):
    irreps_in, irreps, reduce, gate = DOJO[case]
    z = {k: torch.from_numpy(v) for k, v in np.load(shared_reference / "tfn_dojo" / f"{case}.npz").items()}
    z = {k: v.to(dtype) if v.is_floating_point() else v for k, v in z.items()}
    weights = {k[2:]: v for k, v in z.items() if k.startswith("w/")}
    layer = load_tensor_product_conv(
        weights, irreps_in=irreps_in, irreps=irreps, lmax=2, gate=gate, reduce=reduce, cutoff=10.0
    )

    # In dojo row 0 is the center and vectors run from source to center: swap rows, sort by center, keep the vectors.
    center, source = z["in/edge_index"]
    order = center.argsort(stable=True)
    edges = Edges(torch.stack([source, center])[:, order], len(z["in/h"]))
    h = z["in/h"].clone().requires_grad_()
    out = layer({"h": h, "edge_vec": z["mid/edge_vec"][order], "edges": edges})["h"]
    assert relative_error(out, z["out/h"], irreps=str(layer.irreps_out)) < tolerance

    (out.flatten() * torch.linspace(-1, 1, out.numel(), dtype=dtype)).sum().backward()
    assert relative_error(h.grad, z["grad/h"]) < tolerance
    for name, parameter in layer.named_parameters():
        assert relative_error(parameter.grad, z[f"grad/w/{name}"]) < tolerance


def test_full_mode_equals_e3nn_fully_connected_tensor_product(float64):
    layer = TFN(make_fields("3x0e+2x1o+2x1e+1x2e", 5), irreps="4x0e+1x0o+2x1o+3x2e", lmax=2, mode="full", gate=False)
    f = random_inputs(layer)
    tp = o3.FullyConnectedTensorProduct(
        layer.product.irreps_in, layer.product.irreps_sh, layer.irreps_out, shared_weights=False, internal_weights=False
    )
    y = o3.spherical_harmonics(layer.product.irreps_sh, f["edge_vec"], normalize=True, normalization="component")
    message = tp(f["edges"].source(f["h"]), y, layer.fc(f["edge_attr"]))
    assert relative_error(layer(f)["h"], f["edges"].mean(message), irreps=str(layer.irreps_out)) < 1e-12


def test_channelwise_mode_equals_e3nn_uvu_product_and_linear(float64):
    layer = TFN(make_fields("3x0e+2x1o+1x2e", 5), irreps="4x0e+2x1o+3x2e", lmax=2, gate=False, reduce="sum")
    f = random_inputs(layer)
    want = PlainTFN(layer)(f["h"], f["edge_vec"], f["edges"].index, f["edge_attr"])
    assert relative_error(layer(f)["h"], want, irreps=str(layer.irreps_out)) < 1e-12


@pytest.mark.parametrize("mode", ["channelwise", "full"])
def test_any_edges_equal_constant_degree_edges(float64, mode):
    layer = TFN(make_fields("3x0e+2x1o"), irreps="4x0e+2x1o", mode=mode)
    f = random_inputs(layer)
    ragged = f | {"edges": Edges(f["edges"].index, 9)}
    assert f["edges"].degree == 4
    assert relative_error(layer(f)["h"], layer(ragged)["h"]) < 1e-13


def test_a_layer_built_in_float32_is_exact_in_float64():
    layer = TFN(make_fields("3x0e+2x1o+1x2e"), irreps="4x0e+2x1o+1x2e", lmax=2)
    layer(random_inputs(layer.float()) | {"h": torch.ones(9, 14), "edge_vec": torch.ones(36, 3)})
    f = random_inputs(layer.double())
    q = random_rotations(1)[0]
    moved = f | {"h": act(q, f["h"], "3x0e+2x1o+1x2e"), "edge_vec": f["edge_vec"] @ q.T}
    irreps = layer.out["h"].irreps
    assert relative_error(layer(moved)["h"], act(q, layer(f)["h"], irreps), irreps=irreps) < 1e-12


def test_nodes_without_neighbors_and_graphs_without_edges_give_zero_before_the_gate(float64):
    layer = TFN(make_fields("3x0e"), irreps="4x0e+2x1o", gate=False)
    f = random_inputs(layer, n=3, k=2)
    empty = f | {"edges": Edges(torch.zeros(2, 0, dtype=torch.long), 3), "edge_vec": torch.zeros(0, 3)}
    assert torch.equal(layer(empty)["h"], torch.zeros(3, 10))


def test_average_degree_divides_the_sum(float64):
    torch.manual_seed(0)
    one = TFN(make_fields("3x0e"), irreps="4x0e+2x1o", gate=False, reduce="sum", average_degree=4)
    two = TFN(make_fields("3x0e"), irreps="4x0e+2x1o", gate=False, reduce="mean")
    two.load_state_dict(one.state_dict())
    f = random_inputs(one, k=4)
    assert relative_error(one(f)["h"], two(f)["h"]) < 1e-14


def test_bessel_basis_is_the_closed_form_and_its_limit_at_zero(float64):
    d = torch.tensor([[0.0], [1e-9], [2.5], [9.999], [10.0], [30.0]])
    got = BesselBasis(3, 10.0)(d)
    n, x = torch.arange(1, 4), d[2]
    u = 1 - 21 * 0.25**5 + 35 * 0.25**6 - 15 * 0.25**7
    assert torch.allclose(got[2], (2 / 10) ** 0.5 * torch.sin(n * torch.pi * x / 10) / x * u, atol=1e-15)
    assert torch.allclose(got[0], (2 / 10) ** 0.5 * n * torch.pi / 10, atol=1e-15)
    assert torch.allclose(got[0], got[1], atol=1e-12)
    assert got[3].abs().max() < 1e-9
    assert got[4:].abs().max() == 0


@pytest.mark.parametrize("irreps", ["4x0e+2x1o+1x2e", "5x0e", "3x1o+2x1e"])
def test_gate_equals_e3nn(float64, irreps):
    from e3nn.nn import Gate as Witness

    ours = Gate(irreps)
    scalars = o3.Irreps([b for b in o3.Irreps(irreps) if b.ir == o3.Irrep("0e")])
    gated = o3.Irreps([b for b in o3.Irreps(irreps) if b.ir != o3.Irrep("0e")])
    gates = o3.Irreps([(gated.num_irreps, "0e")]) if gated.dim else o3.Irreps([])
    silu, sigmoid = torch.nn.functional.silu, torch.sigmoid
    witness = Witness(scalars, [silu] * len(scalars), gates, [sigmoid] * len(gates), gated)
    x = torch.randn(7, ours.irreps_in.dim)
    assert ours.irreps_in == witness.irreps_in
    assert ours.irreps_out == witness.irreps_out.simplify()
    assert relative_error(ours(x), witness(x)) < 1e-14


def test_invalid_options_are_errors():
    with pytest.raises(OptionError, match="mode='depthwise'"):
        layers.create("tfn", make_fields("3x0e"), options={"mode": "depthwise"})
    with pytest.raises(OptionError, match="2e"):
        TFN(make_fields("3x0e"), irreps="3x0e+1x2e", lmax=1)
    with pytest.raises(WiringError, match="edge_attr"):
        TFN(make_fields("3x0e") | {"edge_attr": FieldSpec("edge_attr", "edge", "2x1o")})
