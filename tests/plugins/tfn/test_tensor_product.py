"""Channelwise tensor products against e3nn, and cuEquivariance, if installed, against the e3nn backend."""

from __future__ import annotations

import importlib.util

import pytest
import torch
from e3nn import o3
from protgraph_plugins.se3_transformer.layers import SE3Transformer
from protgraph_plugins.tfn import TFN, ChannelwiseProduct

from protgraph.data.graph.fields import FieldSpec, field
from protgraph.errors import MissingExtraError, OptionError
from protgraph.ops import Edges
from protgraph.testing.symmetry import relative_error

IRREPS = "8x0e+4x1o+4x1e+2x2e"
INSTALLED = all(map(importlib.util.find_spec, ("cuequivariance", "cuequivariance_torch")))
needs_cuequivariance = pytest.mark.skipif(
    not INSTALLED, reason="cuEquivariance is not installed (extra 'cuequivariance')"
)
needs_kernels = pytest.mark.skipif(
    not importlib.util.find_spec("cuequivariance_ops_torch"), reason="cuequivariance-ops-torch-cu… is not installed"
)


def inputs(dtype=torch.float64, device="cpu"):
    g = torch.Generator().manual_seed(0)
    index = torch.tensor([[1, 2, 0, 2, 0, 1], [0, 0, 1, 1, 2, 2]])
    h = torch.randn(3, o3.Irreps(IRREPS).dim, generator=g, dtype=torch.float64)
    vec = torch.nn.functional.normalize(torch.randn(6, 3, generator=g, dtype=torch.float64))
    w = torch.randn(6, 400, generator=g, dtype=torch.float64)
    return *(x.to(device, dtype) for x in (h, vec)), Edges(index.to(device), 3, degree=2), w.to(device, dtype)


@pytest.mark.parametrize("parity", [True, False])
def test_equals_e3nn_uvu(float64, parity):
    ours = ChannelwiseProduct(o3.Irreps(IRREPS), 2, o3.Irreps("0e+1o+2e"), parity=parity)
    h, direction, edges, w = inputs()
    w = w[:, : ours.weight_numel]
    y = o3.spherical_harmonics(ours.irreps_sh, direction, normalize=False, normalization="component")
    weights = w.split([p.channels for p in ours.paths], 1)
    for path, z, weight in zip(ours.paths, ours(h, direction, edges, w), weights, strict=True):
        a, b, c = ours.irreps_in[path.i], ours.irreps_sh[path.s], ours.irreps_out[path.o]
        natural = o3.Irreps([(a.mul, (c.ir.l, a.ir.p * b.ir.p))])  # e3nn couples no others; the numbers are the same
        tp = o3.TensorProduct([a], [b], natural, [(0, 0, 0, "uvu", True)], shared_weights=False, internal_weights=False)
        source = h[edges.index[0], ours.irreps_in.slices()[path.i]]
        want = tp(source, y[:, ours.irreps_sh.slices()[path.s]], weight).view(6, a.mul, -1)
        assert relative_error(z.mT, want) < 1e-13


def test_a_missing_package_is_an_error_with_the_install_command(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda n, *a: None if n.startswith("cuequi") else find(n, *a))
    with pytest.raises(MissingExtraError, match=r"pip install 'protgraph-pyg\[cuequivariance\]'"):
        ChannelwiseProduct(o3.Irreps("4x0e"), 1, o3.Irreps("1o"), backend="cuequivariance")


def test_impossible_outputs_are_errors():
    with pytest.raises(OptionError, match="2e"):
        ChannelwiseProduct(o3.Irreps("4x0e"), 1, o3.Irreps("2e"))


def layer_fields():
    return {"h": FieldSpec("h", "node", IRREPS), "edge_vec": field("edge_vec"), "edges": field("edges")}


def assert_both_backends_agree(device: str, dtype: torch.dtype, tolerance: float) -> None:
    h, vec, edges, _ = inputs(dtype, device)
    full = {"mode": "full"}
    for kind, options in ((TFN, {}), (TFN, full), (SE3Transformer, {}), (SE3Transformer, full)):
        options = {"irreps": "4x0e+4x1o", "lmax": 2, **options}
        torch.manual_seed(0)
        ours = kind(layer_fields(), **options).to(device, dtype)
        theirs = kind(layer_fields(), backend="cuequivariance", **options).to(device, dtype)
        theirs.load_state_dict(ours.state_dict())
        results = []
        for layer in (ours, theirs):
            x = h.clone().requires_grad_()
            out = layer({"h": x, "edge_vec": 5 * vec, "edges": edges})["h"]
            results.append((out, *torch.autograd.grad(out.sin().sum(), [x, *layer.parameters()])))
        assert all(relative_error(b, a) < tolerance for a, b in zip(*results, strict=True))


@needs_cuequivariance
def test_cuequivariance_gives_the_same_values_and_gradients():
    assert_both_backends_agree("cpu", torch.float64, 1e-12)


@pytest.mark.cuda
@needs_cuequivariance
@needs_kernels
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-4)])
def test_cuequivariance_kernels_give_the_same_values_and_gradients(dtype, tolerance):
    assert_both_backends_agree("cuda", dtype, tolerance)
