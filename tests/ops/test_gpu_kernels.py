"""Kernels of edges for GPUs equal torch's general operations: on a GPU, and in Triton's interpreter without one."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
import torch

from protgraph.ops import Edges, Segments
from protgraph.ops.kernels.gpu_kernels import edge_dot, segment_sum

#: Nodes, heads, channels: less and more than a program has.
SHAPES = [(17, 1, 5), (17, 4, 16), (9, 1, 300), (40, 8, 130), (6, 2, 1)]


def assert_kernels_agree(device, dtype, tolerance):
    """Compare both kernels with gathered rows, on random edges with nodes without neighbors."""
    generator = torch.Generator().manual_seed(0)
    for nodes, heads, channels in SHAPES:
        index = torch.randint(nodes, (2, 90), generator=generator)
        index[1] = index[1].clamp(max=nodes - 3).sort().values
        ptr = torch.searchsorted(index[1], torch.arange(nodes + 1)).to(device)
        a, b = (torch.randn(nodes, heads, channels, generator=generator, dtype=torch.float64) for _ in range(2))
        weight = torch.randn(90, heads, generator=generator, dtype=torch.float64)
        a, b, weight = (x.to(dtype).to(device) for x in (a, b, weight))
        index = index.to(device)
        exact = {"a": a.double(), "b": b.double(), "w": weight.double()}
        for w in (None, weight.t(), weight.t().contiguous()):
            rows = exact["a"][index[0]] * (1 if w is None else exact["w"].unsqueeze(-1))
            expected = torch.zeros_like(exact["a"]).index_add_(0, index[1], rows)
            got = segment_sum(a, index[0], ptr, w)
            assert got.dtype == dtype and bool((got[-2:] == 0).all())
            torch.testing.assert_close(got.double(), expected, rtol=tolerance, atol=10 * tolerance)
        expected = (exact["a"][index[1]] * exact["b"][index[0]]).sum(-1)
        torch.testing.assert_close(edge_dot(a, b, index).double(), expected, rtol=tolerance, atol=100 * tolerance)
    assert segment_sum(a[:, :, :0], index[0], ptr).shape == (nodes, heads, 0)
    assert edge_dot(a, b, index[:, :0]).shape == (0, heads)


_INTERPRETED = """
import contextlib, torch
torch.cuda.device_of = lambda x: contextlib.nullcontext()
from tests.ops.test_gpu_kernels import assert_kernels_agree
assert_kernels_agree("cpu", torch.float64, 1e-13)
assert_kernels_agree("cpu", torch.float32, 1e-5)
"""


def test_kernels_agree_in_the_interpreter():
    if not find_spec("triton"):
        pytest.skip("triton is not installed: it comes with torch for GPUs")
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(["", *sys.path])}
    done = subprocess.run([sys.executable, "-c", _INTERPRETED], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.cuda
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float64, 1e-13), (torch.float32, 1e-5), (torch.float16, 2e-3), (torch.bfloat16, 1e-2)],
)
def test_kernels_agree_on_a_gpu(dtype, tolerance):
    assert_kernels_agree("cuda", dtype, tolerance)


def _edges(regular, device):
    generator = torch.Generator().manual_seed(1)
    target = (
        torch.arange(40).repeat_interleave(6) if regular else torch.randint(38, (240,), generator=generator).sort()[0]
    )
    index = torch.stack([torch.randint(40, (240,), generator=generator), target]).to(device)
    return Edges(index, 40, degree=6 if regular else None)


def _outputs(edges, device):
    """Return results, gradients and second derivatives of everything that uses a kernel."""
    generator = torch.Generator().manual_seed(2)
    x, y = (torch.randn(40, 3, 12, generator=generator, dtype=torch.float64) for _ in range(2))
    w, m = (torch.randn(240, *shape, generator=generator, dtype=torch.float64) for shape in ((3,), (3, 12)))
    inputs = [v.to(device).requires_grad_() for v in (x, y, w, m)]
    x, y, w, m = inputs
    out = [
        edges.gather_sum(x, w),
        edges.gather_sum(x.flatten(1)),
        edges.dot(x, y),
        edges.pair_sum(x, y, m),
        edges.sum(m),
        edges.source(x),
        Segments(edges.index[0], 40, is_sorted=False).sum(m),
    ]
    first = torch.autograd.grad(sum(o.sin().sum() for o in out), inputs, create_graph=True)
    second = torch.autograd.grad(sum(g.square().sum() for g in first), inputs)
    return [v.detach().cpu() for v in (*out, *first, *second)]


@pytest.mark.cuda
@pytest.mark.parametrize("regular", [True, False])
def test_edges_give_the_same_on_a_gpu_up_to_second_derivatives(regular):
    for got, expected in zip(*(_outputs(_edges(regular, d), d) for d in ("cuda", "cpu")), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.cuda
def test_sums_on_a_gpu_are_the_same_bits_each_time_without_synchronization():
    edges, x = _edges(False, "cuda"), torch.randn(40, 128, device="cuda", requires_grad=True)

    def run():
        out = edges.gather_sum(x)
        return torch.cat([out, *torch.autograd.grad(out.sin().sum(), [x])])

    first = run()
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        second = run()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.equal(first, second)
