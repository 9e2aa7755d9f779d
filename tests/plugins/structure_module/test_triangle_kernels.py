"""Triangle layers with cuEquivariance: its CUDA kernels, or on a CPU what is passed to a stand-in for them."""

from __future__ import annotations

import importlib.util
import sys
from importlib import import_module
from types import SimpleNamespace

import pytest
import torch
from protgraph_plugins.structure_module import triangle
from protgraph_plugins.structure_module.triangle import TriangleAttention, TriangleMultiplication
from torch.nn.functional import layer_norm, linear

from protgraph.data.graph.fields import FieldSpec, field
from protgraph.errors import MissingExtraError, OptionError
from protgraph.ops import Proteins
from protgraph.testing.symmetry import relative_error

WIDTH, SIZES = 32, (3, 5)
FIELDS = {"pair": FieldSpec("pair", "pair", f"{WIDTH}x0e"), "proteins": field("proteins")}
LAYERS = [
    (TriangleMultiplication, {"edges": "outgoing"}),
    (TriangleMultiplication, {"edges": "incoming"}),
    (TriangleAttention, {"node": "starting"}),
    (TriangleAttention, {"node": "ending"}),
]
INSTALLED = all(map(importlib.util.find_spec, ("cuequivariance", "cuequivariance_torch")))
needs_cuequivariance = pytest.mark.skipif(
    not INSTALLED, reason="cuEquivariance is not installed (extra 'cuequivariance')"
)
needs_kernels = pytest.mark.skipif(
    not importlib.util.find_spec("cuequivariance_ops_torch"), reason="cuequivariance-ops-torch-cu… is not installed"
)


def attention(q, k, v, bias, mask, scale, return_aux, *, kv_lengths):
    """Equation of the documentation of ``cuequivariance_torch.triangle_attention``, for (B, N, H, Q, D)."""
    assert q.dim() == bias.dim() == 5 and mask is scale is kv_lengths is None and not return_aux
    return ((q @ k.mT / q.size(-1) ** 0.5) + bias).softmax(-1) @ v


def update(x, direction, *, mask, eps, precision, **w):
    """Equations of Jumper et al. 2021, algorithms 11 and 12, with the arguments of ``cuequivariance_torch``."""
    assert x.dim() == 4 and mask is precision is None

    def apply(name, z):
        return linear(z, w[f"{name}_weight"], w[f"{name}_bias"])

    x = layer_norm(x, x.shape[-1:], w["norm_in_weight"], w["norm_in_bias"], eps)
    a, b = (apply("p_in", x) * apply("g_in", x).sigmoid()).chunk(2, -1)
    product = {"outgoing": "bikd,bjkd->bijd", "incoming": "bkid,bkjd->bijd"}[direction]
    z = torch.einsum(product, a, b)
    z = layer_norm(z, z.shape[-1:], w["norm_out_weight"], w["norm_out_bias"], eps)
    return apply("p_out", z) * apply("g_out", x).sigmoid()


def assert_backends_agree(kind, options, device, dtype, tolerance):
    torch.manual_seed(0)
    batch = torch.arange(len(SIZES)).repeat_interleave(torch.tensor(SIZES)).to(device)
    proteins, x = Proteins(batch, SIZES), torch.randn(sum(s * s for s in SIZES), WIDTH, device=device, dtype=dtype)
    ours = kind(FIELDS, **options).to(device, dtype)
    for parameter in ours.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    theirs = kind(FIELDS, backend="cuequivariance", **options).to(device, dtype)
    theirs.load_state_dict(ours.state_dict())
    results = []
    for layer in (ours, theirs):
        z = x.clone().requires_grad_()
        y = layer({"pair": z, "proteins": proteins})["pair"]
        results.append((y, *torch.autograd.grad(y.sin().sum(), [z, *layer.parameters()])))
    assert all(relative_error(b, a) < tolerance for a, b in zip(*results, strict=True))


@needs_cuequivariance
def test_the_arguments_of_the_kernels_have_the_documented_meaning(monkeypatch):
    import_module("cuequivariance_torch")
    kernels = SimpleNamespace(triangle_attention=attention, triangle_multiplicative_update=update, __spec__=object())
    monkeypatch.setitem(sys.modules, "cuequivariance_ops_torch", kernels)
    monkeypatch.setattr(triangle, "uses_triangle_kernel", lambda backend, x: backend == "cuequivariance")
    for kind, options in LAYERS:
        assert_backends_agree(kind, options, "cpu", torch.float64, 1e-12)


@needs_cuequivariance
def test_tensors_on_a_cpu_use_torch():
    for kind, options in LAYERS:
        assert_backends_agree(kind, options, "cpu", torch.float64, 1e-15)


@pytest.mark.cuda
@needs_cuequivariance
@needs_kernels
def test_triangle_kernels_give_the_same_values_and_gradients():
    for kind, options in LAYERS:
        assert_backends_agree(kind, options, "cuda", torch.float32, 1e-2)


def test_the_extra_is_named_where_it_is_missing(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda n, *a: None if n.startswith("cuequi") else find(n, *a))
    with pytest.raises(MissingExtraError, match=r"protgraph-pyg\[cuequivariance\]"):
        TriangleAttention(FIELDS, backend="cuequivariance")


def test_widths_that_the_kernel_does_not_have_are_errors(monkeypatch):
    monkeypatch.setattr(triangle, "require_cuequivariance", lambda: None)
    with pytest.raises(OptionError, match="hidden=20"):
        TriangleMultiplication(FIELDS, hidden=20, backend="cuequivariance")
