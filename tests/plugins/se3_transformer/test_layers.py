"""SE(3)-Transformer layers against the published codes' numbers, e3nn, the plain formula, and their symmetry."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from e3nn import o3
from protgraph_plugins.se3_transformer.kernel import _apply_kernel
from protgraph_plugins.se3_transformer.layers import NormReLU, SE3Conv, SE3Transformer
from torch.nn.functional import layer_norm

from benchmarks.plain_steerable import PlainSE3Conv, PlainSE3Transformer
from protgraph.data.graph.fields import FieldSpec, field
from protgraph.errors import OptionError
from protgraph.ops import Edges
from protgraph.testing.symmetry import act, random_reflections, random_rotations, relative_error
from tests.reference.se3_transformer import from_reference

TOLERANCE = {torch.float64: 1e-10, torch.float32: 1e-5}
IN, OUT = "4x0e+2x0o+4x1o+2x1e+2x2e", "4x0e+2x0o+2x1o+2x1e+2x2e"


def make_fields(irreps: str, edge_attr: int = 0) -> dict[str, FieldSpec]:
    fields = {"h": FieldSpec("h", "node", irreps), "edge_vec": field("edge_vec"), "edges": field("edges")}
    return fields | ({"edge_attr": FieldSpec("edge_attr", "edge", f"{edge_attr}x0e")} if edge_attr else {})


def random_inputs(irreps: str, *, n: int = 9, k: int = 4, constant: bool = True, edge_attr: int = 0) -> dict:
    g = torch.Generator().manual_seed(0)
    source = torch.stack([torch.randperm(n - 1, generator=g)[:k] for _ in range(n)])
    source = source + (source >= torch.arange(n)[:, None])
    index = torch.stack([source.flatten(), torch.arange(n).repeat_interleave(k)])
    if not constant:
        index = index[:, torch.rand(n * k, generator=g) < 0.7]
    pos = 4 * torch.randn(n, 3, generator=g)
    f = {"h": torch.randn(n, o3.Irreps(irreps).dim, generator=g), "pos": pos}
    f["edges"] = Edges(index, n, degree=k if constant else None)
    f["edge_vec"] = pos[index[0]] - pos[index[1]]
    return f | ({"edge_attr": torch.rand(index.size(1), edge_attr, generator=g)} if edge_attr else {})


LAYERS = {
    "channelwise": (SE3Transformer, {"heads": 2, "lmax": 2}),
    "full": (SE3Transformer, {"heads": 2, "lmax": 2, "mode": "full", "radial": 4, "nets": "output"}),
    "conv": (SE3Conv, {"lmax": 2, "radial": 4, "nets": "pair"}),
}


def build(name: str, irreps_in: str = IN, irreps: str = OUT, edge_attr: int = 0, **changes):
    torch.manual_seed(0)
    kind, options = LAYERS[name]
    return kind(make_fields(irreps_in, edge_attr), irreps=irreps, **{**options, **changes})


def load(path, dtype) -> dict:
    z = {k: torch.from_numpy(v) for k, v in np.load(path).items()}
    return {k: v.to(dtype) if v.is_floating_point() else v for k, v in z.items()}


def part(z: dict, prefix: str) -> dict:
    return {k.removeprefix(prefix): v for k, v in z.items() if k.startswith(prefix)}


def flat(*features):
    return torch.cat([x.flatten(1) for x in features], 1)


def reference_inputs(z: dict) -> dict:
    """Both references have source j in row 0 and target i in row 1, sorted by target; here the vector is x_j − x_i."""
    j, i = z["in/edge_index"]
    vec = z["in/pos"][j] - z["in/pos"][i]
    edges = Edges(z["in/edge_index"], len(z["in/pos"]))
    h = flat(z["in/f0"], z["in/f1"]).requires_grad_()
    return {"h": h, "edge_vec": vec, "edge_attr": vec.norm(dim=1, keepdim=True), "edges": edges}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(
    ("path", "irreps", "out"),
    [
        ("se3_nvidia/conv_pairwise.npz", "4x0e+3x1o", ("out/f0", "out/f1")),
        ("se3_fuchs/gconv.npz", "3x0e+2x1o", ("out/0", "out/1")),
    ],
)
def test_convolution_equals_nvidia_and_fuchs(shared_reference, path, irreps, out, dtype):
    z = load(shared_reference / path, dtype)
    layer = from_reference(part(z, "w/"), irreps_in="4x0e+4x1o", irreps=irreps)
    got = layer(reference_inputs(z))["h"]
    assert relative_error(got, flat(*(z[o] for o in out)), irreps=irreps) < TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_a_whole_network_and_its_gradient_equal_nvidia(shared_reference, dtype):
    # Two attention blocks, radial networks once per pair and once per output degree, and the last convolution.
    z = load(shared_reference / "se3_nvidia" / "transformer_nonorm.npz", dtype)
    two, three, value = "8x0e+8x1o", "8x0e+8x1o+8x2e", "4x0e+4x1o+4x2e"
    steps = [(two, three), (three, three), (three, two)]
    f = reference_inputs(z)
    x = f["h"]
    for k, (before, after) in enumerate(steps):
        weights = part(z, f"w/graph_modules.{k}.")
        f = f | from_reference(weights, irreps_in=before, irreps=after, value=value, heads=4)(f)
    assert relative_error(f["h"], flat(z["out/f0"], z["out/f1"]), irreps=two) < TOLERANCE[dtype]

    degrees = f["h"].split([8, 24], 1)
    loss = sum((y.flatten() * torch.linspace(-1, 1, y.numel(), dtype=dtype)).sum() for y in degrees)
    (grad,) = torch.autograd.grad(loss, x)
    assert relative_error(grad, flat(z["grad/f0"], z["grad/f1"]), irreps=two) < TOLERANCE[dtype]


def test_norm_relu_is_layer_norm_of_norms_and_loads_both_names(float64):
    irreps, x = "6x0e+6x1o", torch.randn(9, 24)
    gamma, beta = torch.rand(12), torch.randn(12)
    nvidia = {"group_norm.weight": gamma, "group_norm.bias": beta}
    fuchs = {
        f"transform.{degree}.0.bn.{name}": both.split(6)[degree]
        for degree in (0, 1)
        for name, both in (("weight", gamma), ("bias", beta))
    }
    v = x[:, 6:].view(9, 6, 3)
    size = v.norm(dim=2)
    want_v = layer_norm(size, (6,), gamma[6:], beta[6:]).relu()[..., None] * v / size[..., None]
    want_s = layer_norm(x[:, :6].abs(), (6,), gamma[:6], beta[:6]).relu() * x[:, :6].sign()
    for state_dict in (nvidia, fuchs):
        layer = from_reference(state_dict, irreps_in=irreps, irreps=irreps)
        assert isinstance(layer, NormReLU)
        assert relative_error(layer({"h": x})["h"], flat(want_s, want_v), irreps=irreps) < 1e-14


def test_norm_relu_is_equivariant_and_finite_at_zero(float64):
    layer = NormReLU(make_fields(IN))
    x = torch.randn(5, o3.Irreps(IN).dim)
    for q in torch.cat([random_rotations(4), random_reflections(4)]):
        assert relative_error(layer({"h": act(q, x, IN)})["h"], act(q, layer({"h": x})["h"], IN), irreps=IN) < 1e-12
    zero = torch.zeros_like(x, requires_grad=True)
    layer({"h": zero})["h"].sum().backward()
    assert zero.grad.isfinite().all()


def test_channelwise_attention_equals_the_plain_formula_with_e3nn(float64):
    irreps = "4x0e+2x1o+2x2e"
    layer = build("channelwise", "3x0e+2x1o+1x2e", irreps, 5, value=irreps, gate=False)
    f = random_inputs("3x0e+2x1o+1x2e", edge_attr=5)
    want = PlainSE3Transformer(layer)(f["h"], f["edge_vec"], f["edges"].index, f["edge_attr"])
    assert relative_error(layer(f)["h"], want, irreps=irreps) < 1e-12


@pytest.mark.parametrize("options", [{}, {"nets": "pair", "reduce": "sum"}], ids=str)
def test_a_convolution_equals_the_plain_formula(float64, options):
    layer = SE3Conv(make_fields("3x0e+2x1o+1x2e", 5), irreps="4x0e+2x1o+2x2e", radial=6, **options)
    f = random_inputs("3x0e+2x1o+1x2e", edge_attr=5)
    want = PlainSE3Conv(layer)(f["h"], f["edge_vec"], f["edges"].index, f["edge_attr"])
    assert relative_error(layer(f)["h"], want, irreps="4x0e+2x1o+2x2e") < 1e-12


def test_the_kernel_in_chunks_equals_einsum_with_both_derivatives(float64):
    hidden, z, weight = torch.rand(70_000, 2), torch.rand(70_000, 1, 4), torch.rand(2, 4, 4)  # more than one chunk
    want = torch.einsum("et,emu,tuw->emw", hidden, z, weight)
    assert relative_error(_apply_kernel(hidden, z, weight), want) < 1e-14
    small = [t[:5].clone().requires_grad_() for t in (hidden, z)] + [weight.clone().requires_grad_()]
    assert torch.autograd.gradcheck(_apply_kernel, small)
    assert torch.autograd.gradgradcheck(_apply_kernel, small)


@pytest.mark.parametrize("name", LAYERS)
def test_any_edges_equal_constant_degree_edges(float64, name):
    layer, f = build(name), random_inputs(IN)
    ragged = f | {"edges": Edges(f["edges"].index, 9)}
    assert relative_error(layer(f)["h"], layer(ragged)["h"], irreps=layer.out["h"].irreps) < 1e-13


@pytest.mark.parametrize("name", LAYERS)
def test_without_parity_layers_are_equivariant_to_rotations_only(float64, name):
    irreps = "4x0e+4x1o"
    layer, f = build(name, irreps, irreps, parity=False), random_inputs(irreps)
    want = layer(f)["h"]
    assert layer.out["h"].chiral and not build(name, irreps, irreps).out["h"].chiral

    def error(q):
        moved = layer(f | {"h": act(q, f["h"], irreps), "edge_vec": f["edge_vec"] @ q.T})["h"]
        return relative_error(moved, act(q, want, irreps), irreps=irreps)

    assert max(map(error, random_rotations(8))) < 1e-10
    assert min(map(error, random_reflections(8))) > 1e-3


def test_a_layer_built_in_float32_is_exact_in_float64():
    layer = build("channelwise").double()
    f = {k: v.double() if isinstance(v, torch.Tensor) else v for k, v in random_inputs(IN).items()}
    q, irreps = random_rotations(1)[0], layer.out["h"].irreps
    moved = f | {"h": act(q, f["h"], IN), "edge_vec": f["edge_vec"] @ q.T}
    assert relative_error(layer(moved)["h"], act(q, layer(f)["h"], irreps), irreps=irreps) < 1e-12


def test_invalid_options_and_weights_of_other_modules_are_errors():
    with pytest.raises(OptionError, match="heads=3"):
        SE3Transformer(make_fields("4x0e"), irreps="4x0e", heads=3)
    with pytest.raises(OptionError, match="keys"):
        SE3Transformer(make_fields("4x0e"), irreps="4x1o", gate=False)
