"""Fused attention to neighbors against explicit edge tensors, up to second derivatives."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn.functional import leaky_relu
from torch.utils._python_dispatch import TorchDispatchMode

from protgraph.ops import Edges
from protgraph.ops.kernels import edge_attention

pytestmark = pytest.mark.usefixtures("float64")

HEADS, WIDTH, FEATURES = 2, 3, 4


def graph(degree: int | None, *, nodes: int = 9) -> Edges:
    """Connect each node to K random nodes, or to 0 to 5."""
    g = torch.Generator().manual_seed(0)
    count = [int(torch.randint(0, 6, (), generator=g)) if degree is None else degree for _ in range(nodes)]
    pairs = [(int(j), i) for i, k in enumerate(count) for j in torch.randperm(nodes, generator=g)[:k]]
    return Edges(torch.tensor(pairs, dtype=torch.long).view(-1, 2).t().contiguous(), nodes, degree=degree)


@pytest.fixture(params=[None, 3, 0], ids=["ragged", "regular", "empty"])
def edges(request, monkeypatch) -> Edges:
    monkeypatch.setattr(edge_attention, "_entries", lambda: 40)  # two nodes per tile
    return graph(request.param)


def leaves(edges: Edges, *shapes: tuple[int, ...]) -> list[Tensor]:
    g = torch.Generator().manual_seed(1)
    return [torch.randn(shape, generator=g, requires_grad=True) for shape in shapes]


def additive(edges: Edges) -> tuple[list[Tensor], list[Tensor | None]]:
    n = edges.num_nodes
    c = HEADS * WIDTH
    wrt = leaves(edges, (n, HEADS, WIDTH), (n, c), (HEADS, WIDTH), (edges.num_edges, FEATURES), (c, FEATURES))
    return wrt, [*wrt]


def explicit_additive(edges, x, t, att, e=None, weight=None, keep=None):
    (j, i), n = edges.index, edges.num_nodes
    z = t[i] + x.flatten(1)[j] + (0 if e is None else e @ weight.t())
    logits = (leaky_relu(z, 0.2).view(-1, HEADS, WIDTH) * att).sum(2)
    return explicit_softmax(edges, n, i, logits, x[j], keep)


def explicit_softmax(edges, n, i, logits, values, keep):
    rows, totals = [], []
    for node in range(n):
        mine = logits[i == node]
        totals.append(mine.logsumexp(0))
        alpha = mine.softmax(0) * (1 if keep is None else keep[i == node])
        rows.append((alpha.unsqueeze(2) * values[i == node]).sum(0))
    return torch.stack(rows), torch.stack(totals)


def finite(out: Tensor, total: Tensor) -> Tensor:
    return torch.cat([out.flatten(), total.exp().flatten()])


def check(ours: Callable[[], Tensor], theirs: Callable[[], Tensor], wrt: list[Tensor]) -> None:
    results = []
    for function in (ours, theirs):
        y = function()
        cotangent = torch.linspace(-1, 2, y.numel()).sin()
        grads = torch.autograd.grad(y, wrt, cotangent, allow_unused=True)
        results.append([y, *(torch.zeros_like(x) if g is None else g for g, x in zip(grads, wrt, strict=True))])
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("with_edge", [True, False])
@pytest.mark.parametrize("dropout", [True, False])
def test_additive_attention_equals_explicit_edges(edges, with_edge, dropout):
    wrt, (x, t, att, e, weight) = additive(edges)
    e, weight, wrt = (e, weight, wrt) if with_edge else (None, None, wrt[:3])
    keep = 2 * torch.randint(0, 2, (edges.num_edges, HEADS)).double() if dropout else None
    check(
        lambda: finite(*edges.additive_attention(x, t, att, slope=0.2, e=e, weight=weight, keep=keep)[:2]),
        lambda: finite(*explicit_additive(edges, x, t, att, e, weight, keep)),
        wrt,
    )


@pytest.mark.parametrize("with_edge", [True, False])
@pytest.mark.parametrize("dropout", [True, False])
def test_dot_attention_equals_explicit_edges(edges, with_edge, dropout):
    n, (j, i) = edges.num_nodes, edges.index
    shapes = [(n, HEADS, WIDTH), (n, 2, HEADS, WIDTH), (n, HEADS, FEATURES), (edges.num_edges, FEATURES)]
    q, kv, p, e = wrt = leaves(edges, *shapes)
    keep = 2 * torch.randint(0, 2, (edges.num_edges, HEADS)).double() if dropout else None

    def ours() -> Tensor:
        if not with_edge:
            return edges.dot_attention(q, kv, keep=keep)[0].flatten()
        out, summed, _ = edges.dot_attention(q, kv, p=p, e=e, keep=keep)
        return torch.cat([out, summed], 2).flatten()

    def theirs() -> Tensor:
        logits, values = (q[i] * kv[j, 0]).sum(2), kv[j, 1]
        if with_edge:
            logits = logits + (p[i] * e.unsqueeze(1)).sum(2)
            values = torch.cat([values, e.unsqueeze(1).expand(-1, HEADS, -1)], 2)
        return explicit_softmax(edges, n, i, logits, values, keep)[0].flatten()

    check(ours, theirs, wrt if with_edge else wrt[:2])


@pytest.mark.parametrize("degree", [None, pytest.param(2, marks=pytest.mark.slow)])
def test_second_derivatives_equal_finite_differences(degree):
    edges = graph(degree, nodes=4)
    (x, t, att, e, weight), _ = additive(edges)

    def run(x: Tensor, t: Tensor, att: Tensor, e: Tensor, weight: Tensor) -> Tensor:
        return finite(*edges.additive_attention(x, t, att, slope=0.2, e=e, weight=weight)[:2]).sin()

    def dot(q: Tensor, kv: Tensor, p: Tensor, e: Tensor) -> Tensor:
        return torch.cat([y.flatten() for y in edges.dot_attention(q, kv, p=p, e=e)[:2]]).sin()

    kv, p = leaves(edges, (4, 2, HEADS, WIDTH), (4, HEADS, FEATURES))
    for function, inputs in ((run, (x, t, att, e, weight)), (dot, (x, kv, p, e))):
        assert torch.autograd.gradcheck(function, inputs)
        assert torch.autograd.gradgradcheck(function, inputs)


def test_torch_func_differentiates_attention():
    edges = graph(3)
    (x, t, att, e, weight), _ = additive(edges)

    def run(x: Tensor) -> Tensor:
        return edges.additive_attention(x, t, att, slope=0.2, e=e, weight=weight)[0].square().sum()

    expected = torch.autograd.grad(run(x), x)[0]
    torch.testing.assert_close(torch.func.grad(run)(x.detach()), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("degree", [None, 3])
def test_general_operations_give_the_same(degree, monkeypatch):
    edges = graph(degree)
    (x, t, att, e, weight), _ = additive(edges)
    fused = edges.additive_attention(x, t, att, slope=0.2, e=e, weight=weight)
    monkeypatch.setattr("protgraph.ops.edges.uses_tiles", lambda x: False)
    for a, b in zip(fused, edges.additive_attention(x, t, att, slope=0.2, e=e, weight=weight), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-13)
    q, kv, p = x, torch.stack([x, x.cos()], 1), torch.randn(9, HEADS, FEATURES)
    general = edges.dot_attention(q, kv, p=p, e=e)
    monkeypatch.undo()
    for a, b in zip(edges.dot_attention(q, kv, p=p, e=e), general, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-13)


class _Largest(TorchDispatchMode):
    """Record the largest number of elements of a result."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for x in out if isinstance(out, tuple | list) else (out,):
            if isinstance(x, Tensor):
                self.elements = max(self.elements, x.numel())
        return out


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("degree", [None, 5])
def test_no_tensor_has_edges_times_channels(degree, fused, monkeypatch):
    monkeypatch.setattr(edge_attention, "_entries", lambda: 2000)
    edges, heads, width = graph(degree, nodes=64), 2, 32
    x, t = torch.randn(64, heads, width, requires_grad=True), torch.randn(64, heads * width, requires_grad=True)
    att, kv = torch.randn(heads, width, requires_grad=True), torch.randn(64, 2, heads, width, requires_grad=True)
    monkeypatch.setattr("protgraph.ops.edges.uses_tiles", lambda x: fused)
    with _Largest() as largest:
        edges.additive_attention(x, t, att, slope=0.2)[0].sum().backward()
        edges.dot_attention(x, kv)[0].sum().backward()
    limit = edges.num_edges * heads * width
    assert (largest.elements < limit) == fused
    assert edge_attention.uses_tiles(x)


class _Products(TorchDispatchMode):
    """Record which results of batched products are contiguous: others are computed one matrix after another."""

    def __init__(self) -> None:
        super().__init__()
        self.contiguous: list[bool] = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        if function.overloadpacket in (torch.ops.aten.bmm, torch.ops.aten.baddbmm_):
            self.contiguous.append(out.is_contiguous())
        return out


@pytest.mark.parametrize("degree", [None, 5])
def test_batched_products_have_contiguous_results(degree):
    edges = graph(degree, nodes=64)
    n, h = edges.num_nodes, HEADS
    q, kv, p, e = leaves(edges, (n, h, WIDTH), (n, 2, h, WIDTH), (h, n, FEATURES), (edges.num_edges, FEATURES))
    with _Products() as products:  # p as einsum leaves it: heads before nodes in memory
        out, summed, _ = edges.dot_attention(q, kv, p=p.transpose(0, 1), e=e)
        (out.sum() + summed.sum()).backward()
    assert len(products.contiguous) >= 8
    assert all(products.contiguous)
