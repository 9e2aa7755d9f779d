"""Sums and products over neighbors against explicit edge tensors, up to second derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor

from protgraph.ops import Edges

pytestmark = pytest.mark.usefixtures("float64")


def random_edges(sizes: Sequence[int], *, degree: int | None) -> Edges:
    """Connect each node to K random nodes of its protein, or to a random number of them."""
    generator, pairs, start = torch.Generator().manual_seed(0), [], 0
    for n in sizes:
        for i in range(n):
            others = torch.randperm(n - 1, generator=generator)
            k = int(torch.randint(0, n, (), generator=generator)) if degree is None else degree
            pairs += [(start + int(j) + int(j >= i), start + i) for j in others[:k]]
        start += n
    return Edges(torch.tensor(pairs, dtype=torch.long).view(-1, 2).t().contiguous(), start, degree=degree)


@pytest.fixture(params=[None, 3], ids=["ragged", "regular"])
def edges(request) -> Edges:
    torch.manual_seed(0)
    return random_edges((7, 5, 9), degree=request.param)


def assert_same(function: Callable[[], Tensor], reference: Callable[[], Tensor], wrt: Sequence[Tensor]) -> None:
    """Check equal values and gradients."""
    results = []
    for f in (function, reference):
        out = f()
        cotangent = torch.linspace(-1, 2, out.numel()).view_as(out).sin()
        results.append((out, *torch.autograd.grad(out, wrt, cotangent)))
    for a, b in zip(*results, strict=True):
        assert b.any()
        torch.testing.assert_close(a, b, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("heads", [None, 1, 4])
@pytest.mark.parametrize("weighted", [True, False])
def test_gather_sum_equals_explicit_edges(edges, heads, weighted):
    x = torch.randn(edges.num_nodes, *([heads] if heads else []), 6, requires_grad=True)
    w = torch.randn(edges.num_edges, *([heads] if heads else []), requires_grad=True)

    def explicit():
        m = x[edges.index[0]]
        return torch.zeros_like(x).index_add(0, edges.index[1], w.unsqueeze(-1) * m if weighted else m)

    assert_same(lambda: edges.gather_sum(x, w if weighted else None), explicit, [x, w] if weighted else [x])


@pytest.mark.parametrize("heads", [None, 1, 4])
def test_dot_equals_explicit_edges(edges, heads):
    shape = (edges.num_nodes, *([heads] if heads else []), 6)
    a, b = (torch.randn(shape, requires_grad=True) for _ in range(2))
    assert_same(lambda: edges.dot(a, b), lambda: (a[edges.index[1]] * b[edges.index[0]]).sum(-1), [a, b])


@pytest.mark.parametrize("with_edge", [True, False])
@pytest.mark.parametrize("trailing", [(6,), (2, 3)])
def test_pair_sum_equals_explicit_edges(edges, with_edge, trailing):
    a, b = (torch.randn(edges.num_nodes, *trailing, requires_grad=True) for _ in range(2))
    e = torch.randn(edges.num_edges, *trailing, requires_grad=True)
    assert_same(
        lambda: edges.pair_sum(a, b, e if with_edge else None),
        lambda: a[edges.index[1]] + b[edges.index[0]] + (e if with_edge else 0),
        [a, b, e] if with_edge else [a, b],
    )


@pytest.mark.parametrize("trailing", [(), (1,), (6,), (2, 3), (70,)])
def test_gather_and_sum_have_the_gradients_of_indexing(edges, trailing):
    x = torch.randn(edges.num_nodes, *trailing, requires_grad=True)
    m = torch.randn(edges.num_edges, *trailing, requires_grad=True)
    assert_same(lambda: edges.source(x), lambda: x[edges.index[0]], [x])
    assert_same(lambda: edges.target(x), lambda: x[edges.index[1]], [x])
    for row, reduce in ((0, edges.sources.sum), (1, edges.sum)):
        zeros = torch.zeros(edges.num_nodes, *trailing)
        assert_same(lambda f=reduce: f(m), lambda z=zeros, r=row: z.index_add(0, edges.index[r], m), [m])


@pytest.mark.slow
@pytest.mark.parametrize("degree", [None, 3], ids=["ragged", "regular"])
def test_gradients_and_second_derivatives_equal_finite_differences(degree):
    torch.manual_seed(0)
    edges = random_edges((4, 5), degree=degree)  # finite differences: a pass per number
    x, w = torch.randn(edges.num_nodes, 2, 3, requires_grad=True), torch.randn(edges.num_edges, 2, requires_grad=True)
    a, e = torch.randn(edges.num_nodes, 3, requires_grad=True), torch.randn(edges.num_edges, 3, requires_grad=True)
    for function, arguments in (
        (lambda x, w: edges.gather_sum(x, w).sin(), (x, w)),
        (lambda x: edges.dot(x, x.cos()).sin(), (x,)),
        (lambda a, e: edges.pair_sum(a, a.cos(), e).sin(), (a, e)),
        (lambda a: (edges.source(a) * edges.target(a)).sin(), (a,)),
        (lambda e: (edges.sum(e) * edges.sources.sum(e)).sin(), (e,)),
        (lambda e: edges.softmax(e).sin(), (e,)),
    ):
        assert torch.autograd.gradcheck(function, arguments)
        assert torch.autograd.gradgradcheck(function, arguments)


def test_torch_func_differentiates_sums_over_neighbors(edges):
    x = torch.randn(edges.num_nodes, 4)

    def square(x: Tensor) -> Tensor:
        return (edges.sum(edges.source(x)) * edges.gather_sum(x)).sum()

    expected = 2 * torch.zeros_like(x).index_add(0, edges.index[0], edges.gather_sum(x)[edges.index[1]])  # 2 AᵀA x
    torch.testing.assert_close(torch.func.grad(square)(x), expected, rtol=1e-12, atol=1e-12)


def test_reversed_edges_are_sorted_by_their_new_target(edges):
    reversed_edges, order = edges.reversed
    assert torch.equal(reversed_edges.index, edges.index.flip(0)[:, order])
    assert (reversed_edges.index[1].diff() >= 0).all()
    assert torch.equal(order.sort()[0], torch.arange(edges.num_edges))
    assert edges.reversed[0] is reversed_edges


def test_dot_in_several_chunks_equals_explicit_edges():
    edges = random_edges((120,), degree=100)
    a = torch.randn(120, 2, 4)
    torch.testing.assert_close(edges.dot(a, a), (a[edges.index[1]] * a[edges.index[0]]).sum(-1), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("sizes", [(1,), (1, 1, 1)])
@pytest.mark.parametrize("degree", [None, 0])
def test_sums_without_edges_are_zero_with_zero_gradient(sizes, degree):
    edges = random_edges(sizes, degree=degree)
    x = torch.randn(edges.num_nodes, 2, 3, requires_grad=True)
    w = torch.randn(0, 2, requires_grad=True)
    out = edges.gather_sum(x, w) + edges.sum(edges.source(x) + edges.target(x))
    out.sum().backward()
    assert not out.any() and not x.grad.any() and w.grad.shape == (0, 2)
    assert edges.dot(x, x).shape == (0, 2)
    assert edges.pair_sum(x[:, 0], x[:, 0]).shape == (0, 3)
