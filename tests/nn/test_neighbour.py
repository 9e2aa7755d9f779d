"""Sums over neighbours equal the explicit edge tensors that they avoid, to second derivatives."""

from __future__ import annotations

import pytest
import torch

from protgraph.nn.neighbour import neighbour_dot, neighbour_sum, pair_sum, reverse

pytestmark = pytest.mark.usefixtures("float64")


@pytest.fixture(params=[None, 3], ids=["ragged", "regular"])
def edges(request, scene):
    return scene(degree=request.param).edges()


@pytest.mark.parametrize("heads", [None, 1, 4])
@pytest.mark.parametrize("weighted", [True, False])
def test_neighbour_sum_equals_explicit_edges(edges, agree, heads, weighted):
    x = torch.randn(edges.num_nodes, *([heads] if heads else []), 6, requires_grad=True)
    w = torch.randn(edges.num_edges, *([heads] if heads else []), requires_grad=True)

    def explicit():
        m = edges.source(x)
        return torch.zeros_like(x).index_add(0, edges.index[1], w.unsqueeze(-1) * m if weighted else m)

    agree(lambda: neighbour_sum(edges, x, w if weighted else None), explicit, [x, w] if weighted else [x], tol=1e-13)


def test_neighbour_dot_equals_explicit_edges(edges, agree):
    a, b = (torch.randn(edges.num_nodes, 4, 6, requires_grad=True) for _ in range(2))
    agree(
        lambda: neighbour_dot(edges, a, b),
        lambda: (a[edges.index[1]] * b[edges.index[0]]).sum(-1),
        [a, b],
        tol=1e-13,
    )


@pytest.mark.parametrize("with_edge", [True, False])
def test_pair_sum_equals_explicit_edges(edges, agree, with_edge):
    a, b = (torch.randn(edges.num_nodes, 6, requires_grad=True) for _ in range(2))
    e = torch.randn(edges.num_edges, 6, requires_grad=True)
    agree(
        lambda: pair_sum(edges, a, b, e if with_edge else None),
        lambda: a[edges.index[1]] + b[edges.index[0]] + (e if with_edge else 0),
        [a, b, e] if with_edge else [a, b],
        tol=1e-13,
    )


def test_derivatives_are_right_to_second_order(edges):
    x, w = torch.randn(edges.num_nodes, 2, 3, requires_grad=True), torch.randn(edges.num_edges, 2, requires_grad=True)
    a, e = torch.randn(edges.num_nodes, 3, requires_grad=True), torch.randn(edges.num_edges, 3, requires_grad=True)
    for function, given in (
        (lambda x, w: neighbour_sum(edges, x, w).sin(), (x, w)),
        (lambda x: neighbour_dot(edges, x, x.cos()).sin(), (x,)),
        (lambda a, e: pair_sum(edges, a, a.cos(), e).sin(), (a, e)),
    ):
        assert torch.autograd.gradcheck(function, given)
        assert torch.autograd.gradgradcheck(function, given)


def test_reverse_turns_every_edge_and_sorts_by_its_new_target(edges):
    back, order = reverse(edges)
    assert torch.equal(back.index, edges.index.flip(0)[:, order])
    assert (back.index[1].diff() >= 0).all()
    assert torch.equal(order.sort()[0], torch.arange(edges.num_edges))


def test_many_edges_take_several_chunks(scene):
    edges = scene((120,), degree=100).edges()
    a = torch.randn(120, 2, 4)
    assert torch.allclose(neighbour_dot(edges, a, a), (a[edges.index[1]] * a[edges.index[0]]).sum(-1), rtol=1e-13)


@pytest.mark.parametrize("sizes", [(1,), (1, 1, 1)])
def test_without_edges_sums_are_zero_with_zero_gradient(scene, sizes):
    edges = scene(sizes).edges()
    x = torch.randn(edges.num_nodes, 2, 3, requires_grad=True)
    w = torch.randn(0, 2, requires_grad=True)
    out = neighbour_sum(edges, x, w)
    out.sum().backward()
    assert not out.any() and not x.grad.any() and w.grad.shape == (0, 2)
    assert neighbour_dot(edges, x, x).shape == (0, 2)
    assert pair_sum(edges, x[:, 0], x[:, 0]).shape == (0, 3)
