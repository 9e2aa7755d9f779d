"""Blocks of nodes with their edges: results as at once, without tensors of edges × channels."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from protgraph import registry
from protgraph.data.graph.fields import FieldSpec, field
from protgraph.ops import Edges, cache_blocks, map_edge_blocks

pytestmark = pytest.mark.usefixtures("float64")

NODES, WIDTH = 40, 12
HIDDEN = 24


@pytest.fixture(params=[None, 6], ids=["ragged", "regular"])
def edges(request) -> Edges:
    """Connect each node to 0 to 9 random nodes, or to 6."""
    g = torch.Generator().manual_seed(0)
    count = [int(torch.randint(0, 10, (), generator=g)) if request.param is None else 6 for _ in range(NODES)]
    pairs = [(int(j), i) for i, k in enumerate(count) for j in torch.randperm(NODES, generator=g)[:k]]
    return Edges(torch.tensor(pairs).t().contiguous(), NODES, degree=request.param)


@pytest.fixture
def small_blocks(monkeypatch) -> None:
    monkeypatch.setattr(cache_blocks, "_entries", lambda: 400)


def values(edges: Edges, *, requires_grad: bool = False) -> list[Tensor]:
    g = torch.Generator().manual_seed(1)
    shapes = [(NODES, WIDTH)] * 2 + [(edges.num_edges, WIDTH)]
    return [torch.randn(shape, generator=g).requires_grad_(requires_grad) for shape in shapes]


@pytest.mark.parametrize("gradients", [True, False])
def test_edge_blocks_equal_all_edges_at_once(edges, gradients, small_blocks):
    a, b, e = wrt = values(edges, requires_grad=gradients)
    numbers = []

    def function(block: Edges, z: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
        numbers.append(block.num_nodes)
        z = z.mul_(2).sin() * e
        return block.mean(z), block.max(z)

    with torch.set_grad_enabled(gradients):
        found = map_edge_blocks(function, edges, pairs=[(a, b)], edge_values=[e])
    assert len(numbers) > 3
    assert sum(numbers) == NODES
    expected = function(edges, edges.target(a) + edges.source(b), e)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-13)
    if gradients:
        results = [torch.autograd.grad(sum(x.cos().sum() for x in y), wrt) for y in (found, expected)]
        for x, y in zip(*results, strict=True):
            torch.testing.assert_close(x, y, rtol=1e-12, atol=1e-13)


def test_graph_without_edges_gives_zeros(small_blocks):
    edges = Edges(torch.empty(2, 0, dtype=torch.long), NODES)
    h = torch.ones(NODES, 1)
    with torch.no_grad():
        out = map_edge_blocks(lambda block, z: block.sum(z), edges, pairs=[(h, h)])
    assert out.tolist() == [[0.0]] * NODES


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


LAYERS = {
    "mpnn": ({"h": "24x0e", "edge_attr": "2x0e"}, {"dim": HIDDEN}),
    "egnn": ({"h": "24x0e", "pos": None, "edge_attr": "2x0e"}, {"dim": HIDDEN, "attention": True, "normalize": True}),
    "gvp_conv": ({"h": "24x0e+4x1o", "edge_attr": "2x0e+1x1o"}, {}),
    "gcn": ({"h": "24x0e"}, {"dim": HIDDEN}),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_in_blocks_equal_all_edges_at_once(name, edges, monkeypatch):
    irreps, options = LAYERS[name]
    fields = {
        k: field(k) if v is None else FieldSpec(k, "edge" if k == "edge_attr" else "node", v) for k, v in irreps.items()
    }
    torch.manual_seed(0)
    layer = registry.layers.get(name)({**fields, "edges": field("edges")}, **options)
    rows = {"node": NODES, "edge": edges.num_edges}
    f = {k: torch.randn(rows[spec.level], spec.dim) for k, spec in fields.items()} | {"edges": edges}
    expected = layer(f)
    monkeypatch.setattr(cache_blocks, "_entries", lambda: 400)
    with torch.no_grad(), _Largest() as largest:
        found = layer(f)
    for local, x in expected.items():
        torch.testing.assert_close(found[local], x.detach(), rtol=1e-12, atol=1e-12)
    assert largest.elements < edges.num_edges * HIDDEN
