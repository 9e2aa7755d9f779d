"""Reductions of ``Edges``, ``Proteins`` and ``Segments`` against loops over rows, and against torch-scatter."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from torch_geometric.data import Batch
from torch_geometric.transforms import AddSelfLoops, ToUndirected

from protgraph.data.graph.protein_graph import ProteinGraph, collate
from protgraph.errors import FieldError, IndexRangeError
from protgraph.ops import Edges, Proteins, Segments

LOOPS = {
    "sum": lambda rows: rows.sum(0),
    "mean": lambda rows: rows.mean(0) if len(rows) else rows.sum(0),
    "max": lambda rows: rows.amax(0) if len(rows) else rows.sum(0),
}


@st.composite
def edge_lists(draw):
    """Draw sorted edges of up to 9 nodes with any number of incoming edges or exactly K; and K or None."""
    n = draw(st.integers(1, 9))
    k = draw(st.one_of(st.none(), st.integers(0, 4)))
    counts = [k] * n if k is not None else draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    sources = draw(st.lists(st.integers(0, n - 1), min_size=sum(counts), max_size=sum(counts)))
    target = torch.arange(n).repeat_interleave(torch.tensor(counts))
    return torch.stack([torch.tensor(sources, dtype=torch.long), target]), n, k


def rows_of(edges, m, i):
    return m[edges.index[1] == i]


@settings(max_examples=60, deadline=None)
@given(edge_lists(), st.sampled_from([(), (3,), (2, 3)]))
def test_reductions_equal_loops(graph, trailing):
    index, n, k = graph
    edges = Edges(index, n, degree=k)
    m = torch.randn(index.size(1), *trailing, dtype=torch.float64)
    for name, loop in LOOPS.items():
        expected = torch.stack([loop(rows_of(edges, m, i)) for i in range(n)])
        torch.testing.assert_close(getattr(edges, name)(m), expected, rtol=1e-12, atol=1e-14)


@settings(max_examples=60, deadline=None)
@given(edge_lists())
def test_softmax_equals_loops_and_sums_to_one(graph):
    index, n, k = graph
    edges = Edges(index, n, degree=k)
    logits = 50 * torch.randn(index.size(1), 2, dtype=torch.float64)
    alpha = edges.softmax(logits)
    for i in range(n):
        rows = rows_of(edges, logits, i)
        torch.testing.assert_close(rows_of(edges, alpha, i), rows.softmax(0), rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(edges.sum(alpha), (edges.count > 0).double().unsqueeze(1).expand(n, 2))


@settings(max_examples=60, deadline=None)
@given(edge_lists())
def test_gathers_pointers_and_counts_equal_definition(graph):
    index, n, k = graph
    edges = Edges(index, n, degree=k)
    x = torch.randn(n, 3)
    assert torch.equal(edges.source(x), x[index[0]]) and torch.equal(edges.target(x), x[index[1]])
    assert edges.count.tolist() == [int((index[1] == i).sum()) for i in range(n)]
    assert edges.ptr.tolist() == [int((index[1] < i).sum()) for i in range(n + 1)]
    assert edges.num_edges == index.size(1)


@settings(max_examples=30, deadline=None)
@given(edge_lists())
def test_gradients_equal_those_of_loops(graph):
    index, n, k = graph
    edges = Edges(index, n, degree=k)
    m = torch.randn(index.size(1), 2, dtype=torch.float64)
    for name, loop in LOOPS.items():
        ours, plain = m.clone().requires_grad_(), m.clone().requires_grad_()
        out = getattr(edges, name)(ours)
        expected = torch.stack([loop(rows_of(edges, plain, i)) for i in range(n)])
        weight = torch.arange(out.numel(), dtype=m.dtype).sin().view_as(out)
        (out * weight).sum().backward()
        (expected * weight).sum().backward()
        torch.testing.assert_close(ours.grad, plain.grad, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("degree", [None, 4])
def test_reductions_and_gradients_equal_torch_scatter(degree):
    torch_scatter = pytest.importorskip("torch_scatter", reason="torch-scatter is not installed")
    n = 50
    counts = torch.arange(n) % 7 if degree is None else torch.full((n,), degree)
    target = torch.arange(n).repeat_interleave(counts)
    source = torch.arange(target.numel()).flip(0) % n
    edges = Edges(torch.stack([source, target]), n, degree=degree)
    m = torch.randn(target.numel(), 3, dtype=torch.float64)
    for name in (*LOOPS, "softmax"):
        ours, theirs = m.clone().requires_grad_(), m.clone().requires_grad_()
        out = getattr(edges, name)(ours)
        if name == "softmax":
            expected = torch_scatter.composite.scatter_softmax(theirs, target, dim=0, dim_size=n)
        else:
            expected = torch_scatter.segment_csr(theirs, edges.ptr, reduce=name)
        torch.testing.assert_close(out, expected, rtol=1e-12, atol=1e-14)
        weight = torch.arange(out.numel(), dtype=m.dtype).sin().view_as(out)
        (out * weight).sum().backward()
        (expected * weight).sum().backward()
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-11, atol=1e-13)


def test_large_logits_do_not_overflow():
    index = torch.tensor([[0, 1, 2, 0], [0, 0, 0, 2]])
    alpha = Edges(index, 3).softmax(torch.tensor([1e4, 1e4, -1e4, -1e30]))
    assert alpha.tolist() == [0.5, 0.5, 0.0, 1.0]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=5))
def test_reductions_of_proteins_equal_loops(sizes):
    batch = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    proteins = Proteins(batch, tuple(sizes))
    x = torch.randn(sum(sizes), 2, dtype=torch.float64)
    parts = x.split(sizes)
    for name, loop in LOOPS.items():
        torch.testing.assert_close(
            getattr(proteins, name)(x), torch.stack([loop(p) for p in parts]), rtol=1e-12, atol=1e-14
        )
    torch.testing.assert_close(proteins.softmax(x), torch.cat([p.softmax(0) for p in parts]), rtol=1e-12, atol=1e-14)
    assert all(torch.equal(a, b) for a, b in zip(proteins.split(x), parts, strict=True))
    assert torch.equal(proteins.expand(torch.arange(len(sizes))), batch)
    padded, mask = proteins.pad(x, value=-7.0)
    assert padded.shape == (len(sizes), max(sizes), 2) and mask.sum(1).tolist() == sizes
    assert (padded[~mask] == -7).all()
    assert torch.equal(padded[mask], x) and torch.equal(proteins.unpad(padded), x)
    assert proteins.ptr.tolist() == [sum(sizes[:b]) for b in range(len(sizes) + 1)]
    assert len(proteins) == len(sizes)


def ring(n: int, name: str) -> ProteinGraph:
    graph = ProteinGraph(pos=torch.randn(n, 3), edge_index=torch.stack([(torch.arange(n) + 1) % n, torch.arange(n)]))
    graph.name, graph.degree = name, 1
    return graph


@pytest.mark.parametrize("join", [collate, Batch.from_data_list])
def test_batches_of_collate_and_of_pyg_have_the_edges_of_their_graphs(join):
    batch = join([ring(3, "a"), ring(4, "b")])
    edges = Edges.from_graph(batch)
    assert edges.index.tolist() == [[1, 2, 0, 4, 5, 6, 3], [0, 1, 2, 3, 4, 5, 6]]
    assert Proteins.from_graph(batch).sizes == (3, 4)
    assert edges.count.tolist() == [1] * 7
    if join is collate:
        assert edges.degree == 1


@pytest.mark.parametrize(
    "change",
    [ToUndirected(), AddSelfLoops(), lambda g: g.update({"edge_index": g.edge_index.flip(1)})],
    ids=["undirected", "self_loops", "flipped"],
)
@pytest.mark.parametrize(
    "join", [lambda graphs: graphs[0], Batch.from_data_list, collate], ids=["single", "pyg", "collate"]
)
def test_unsorted_edges_raise(change, join):
    """PyG's transforms leave edges unsorted; reductions over slices of such edges would be wrong."""
    graph = change(ring(5, "a"))
    with pytest.raises(FieldError, match="sort_by_row"):
        Edges.from_graph(join([graph, graph]))


@pytest.mark.parametrize("join", [lambda graphs: graphs[0], collate], ids=["single", "collate"])
def test_wrong_degree_raises(join):
    graph = ring(5, "a").subgraph(torch.tensor([0, 1, 2]))
    with pytest.raises(FieldError, match="degree"):
        Edges.from_graph(join([graph, graph]))


def test_sorting_and_deleting_degree_fixes_transformed_graphs():
    graph = ToUndirected()(ring(5, "a"))
    assert not graph.validate(raise_on_error=False)
    del graph.degree
    edges = Edges.from_graph(graph.sort(sort_by_row=False))
    x = torch.arange(5.0).unsqueeze(1)
    assert edges.sum(edges.source(x)).flatten().tolist() == [1 + 4, 0 + 2, 1 + 3, 2 + 4, 3 + 0]


def test_a_single_graph_is_one_protein():
    assert Proteins.from_graph(ring(5, "a")).sizes == (5,)


def test_contradictory_arguments_raise():
    with pytest.raises(FieldError, match="knn"):
        Edges.from_graph(ProteinGraph(pos=torch.zeros(2, 3)))
    with pytest.raises(FieldError, match="3"):
        Proteins(torch.zeros(3, dtype=torch.long), (1, 1))
    with pytest.raises(FieldError, match="3 rows"):
        Segments(torch.tensor([0, 0, 1]), 2, length=2)


def test_incoming_edges_are_padded_with_zeros():
    edges = Edges(torch.tensor([[1, 2, 0, 0], [0, 0, 1, 3]]), num_nodes=4)
    m = torch.tensor([[1.0], [2.0], [3.0], [4.0]])
    assert edges.max_degree == 2
    assert edges.incoming(m).squeeze(2).tolist() == [[1, 2], [3, 0], [0, 0], [4, 0]]
    none = Edges(torch.zeros(2, 0, dtype=torch.long), num_nodes=2)
    assert none.incoming(torch.zeros(0, 3)).shape == (2, 0, 3)


def test_gather_sum_of_bipartite_edges_and_its_gradient():
    edges = Edges(torch.tensor([[5, 0, 3], [0, 1, 1]]), num_nodes=2, num_sources=6)
    x = torch.arange(6.0).unsqueeze(1).requires_grad_()
    out = edges.gather_sum(x, torch.tensor([1.0, 2.0, 3.0]))
    assert out.flatten().tolist() == [5.0, 9.0]
    (grad,) = torch.autograd.grad(out @ torch.ones(1, 1), x, torch.tensor([[1.0], [10.0]]))
    assert grad.flatten().tolist() == [20.0, 0.0, 0.0, 30.0, 0.0, 1.0]


def test_cached_values_are_recomputed_for_another_tensor():
    edges = Edges(torch.tensor([[1], [0]]), num_nodes=2)
    tensor, calls = torch.ones(1, 1), []

    def compute() -> int:
        calls.append(1)
        return len(calls)

    assert [edges.cached("key", tensor, compute), edges.cached("key", tensor, compute)] == [1, 1]
    assert edges.cached("key", tensor.clone(), compute) == 2


def test_nodes_out_of_range_raise_with_their_number():
    regular = [([[7, 0], [0, 1]], "7"), ([[1, -1], [0, 1]], "-1")]  # only the sources are out of range
    for index, number in [([[0], [7]], "7"), ([[-1], [0]], "-1"), *regular]:
        graph = ProteinGraph(pos=torch.zeros(2, 3), edge_index=torch.tensor(index))
        if len(index[0]) == 2:
            graph.degree = 1
        with pytest.raises(FieldError, match=number):
            Edges.from_graph(graph)


@pytest.mark.parametrize(
    ("index", "options", "number"),
    [
        ([70000, 9000, 5000, 1, 0], {"is_sorted": False}, "70000 "),  # a segmentation fault without the check
        ([1, 0, -70000, 2, -1], {"is_sorted": False}, "-70000 "),
        ([0, 0, 1, 5000, 9000], {}, "9000 "),
        ([-2, -1, 0, 1, 2], {}, "-2 "),
        ([0, 1, 3], {"length": 1}, "3 "),
    ],
)
def test_segments_out_of_range_raise_with_the_largest_number(index, options, number):
    with pytest.raises(IndexRangeError, match=f"segment {number}") as e:
        Segments(torch.tensor(index), 3, **options)
    assert isinstance(e.value, IndexError) and "0 to 2" in str(e.value)


@pytest.mark.parametrize(
    ("index", "sizes", "text"),
    [
        ([[0, 1], [0, 50000]], (3,), "target 50000 "),
        ([[0, 1], [-1, 2]], (3,), "target -1 "),
        ([[0, 50000], [0, 1]], (3,), "source 50000 "),
        ([[-50000, 0], [0, 1]], (3,), "source -50000 "),
        ([[5, 6], [0, 1]], (2, 6), "source 6 "),  # bipartite
    ],
)
def test_edges_out_of_range_raise_with_the_largest_number(index, sizes, text):
    with pytest.raises(IndexRangeError, match=text):
        Edges(torch.tensor(index), sizes[0], num_sources=sizes[-1])


@pytest.mark.parametrize(("index", "length"), [([0, 2, 1], None), ([0, 0, 0, 1], 2), ([0, 1, 1, 1], 2)])
def test_segments_that_are_not_sorted_or_not_of_equal_length_raise(index, length):
    with pytest.raises(FieldError):
        Segments(torch.tensor(index), len(index) // (length or 1), length=length)


def test_segments_on_meta_and_in_a_compiled_function_have_no_values_to_check():
    wrong = torch.tensor([7, 9])
    assert Segments(wrong.to("meta"), 2).sum(torch.ones(2, 1, device="meta")).shape == (2, 1)
    compiled = torch.compile(lambda i, x: Segments(i, 2).sum(x), backend="eager", fullgraph=True)
    assert compiled(torch.tensor([0, 1]), torch.ones(2, 1)).tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize("segments", [2**15, 2**15 + 1])
def test_rows_of_a_segment_keep_their_order(segments):
    index = torch.randint(segments, (500,), generator=torch.Generator().manual_seed(0))
    index[:4] = torch.tensor([segments - 1, 0, segments - 1, 0])  # the ends of the range, each twice
    found = Segments(index, segments, is_sorted=False)
    assert found.order.tolist() == sorted(range(500), key=lambda row: int(index[row]))
    assert torch.equal(found.index[found.order], index.sort(stable=True).values)


@pytest.mark.parametrize(("segments", "rows"), [(0, 0), (5, 0), (1, 4), (7, 20), (300, 50), (70_000, 200_000)])
def test_order_and_pointer_of_unsorted_rows_equal_a_stable_sort(segments, rows):
    index = torch.randint(max(segments, 1), (rows,), generator=torch.Generator().manual_seed(0))
    found = Segments(index, segments, is_sorted=False)
    by_segment, order = index.sort(stable=True)
    assert torch.equal(found.order, order)
    assert torch.equal(found.ptr, torch.searchsorted(by_segment, torch.arange(segments + 1)))


def test_edges_that_a_transform_of_torch_func_wraps_are_reversed():
    index = torch.tensor([[1, 2, 0, 2], [0, 0, 1, 3]])

    def square(x):
        edges = Edges(index * 1, 4)  # wrapped, as the result of an operation within it
        return (edges.reversed[0].gather_sum(x) ** 2).sum()

    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    leaf = x.clone().requires_grad_()
    (expected,) = torch.autograd.grad(square(leaf), leaf)
    assert torch.equal(torch.func.grad(square)(x), expected)
