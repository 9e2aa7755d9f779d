"""Sum over neighbors and reversal of edges: protgraph and general implementations."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from benchmarks.synthetic_inputs import forward_backward, largest_difference, machine, protein
from benchmarks.timing import Measurement, interleave
from protgraph.ops import Edges, Segments

__all__ = ["measure"]

NODES, DEGREE, CHANNELS = 2048, 30, 128
NODES_ON_GPU = 131072  # of forward passes that are not limited by the host

Function = Callable[[Tensor], Tensor]


def measure(*, seconds: float = 5.0, device: str = "cpu") -> list[Measurement]:
    """Measure 2048 residues with 30 neighbors each, 128 channels float32; forward and backward."""
    graph = protein(NODES, DEGREE).to(device)
    edges = Edges.from_graph(graph)
    generator = torch.Generator(device).manual_seed(0)
    options = {"generator": generator, "device": device, "requires_grad": True}
    message, h = torch.randn(NODES * DEGREE, CHANNELS, **options), torch.randn(NODES, CHANNELS, **options)
    sums = _sums(edges)
    source = edges.index[0]
    gathered = {f"gather, then {name}": lambda x, s=s: s(x.index_select(0, source)) for name, s in sums.items()}
    gathered["gather, then edges.sum"] = lambda x: edges.sum(edges.source(x))
    mib = message.numel() * 4 / 2**20
    copy = message.detach()
    return [
        _measure(
            f"sum of messages, ({NODES} × {DEGREE}) × {CHANNELS}",
            sums,
            message,
            seconds=seconds / 2,
            lower_bound=f"{mib:.0f} MiB of messages read and as much gradient written: bound by memory",
            least={"lower bound: read as much, write as much": lambda: torch.empty_like(copy).copy_(copy)},
        ),
        _measure(
            f"sum of neighbors' features, {NODES} × {CHANNELS} along {NODES * DEGREE:,} edges",
            {"edges.gather_sum": edges.gather_sum, **gathered},
            h,
            seconds=seconds / 2,
            lower_bound=f"{h.numel() * 4 / 2**20:.0f} MiB in and out, twice; {2 * message.numel() / 1e6:.0f} M "
            f"additions; {mib:.0f} MiB of messages are not required",
            least={},
        ),
        _reversal(graph.edge_index, seconds / 4),
        *(_forward_passes(device, seconds / 4) if device != "cpu" else []),
    ]


def _forward_passes(device: str, seconds: float) -> list[Measurement]:
    """Measure weighted sums and dot products along random edges, beside a gathered row per edge."""
    generator, count = torch.Generator().manual_seed(0), NODES_ON_GPU * DEGREE
    target = torch.arange(NODES_ON_GPU).repeat_interleave(DEGREE)
    index = torch.stack([torch.randint(NODES_ON_GPU, (count,), generator=generator), target]).to(device)
    edges, (source, target) = Edges(index, NODES_ON_GPU, degree=DEGREE), index
    h = torch.randn(NODES_ON_GPU, CHANNELS, generator=generator).to(device)
    weight = torch.rand(count, generator=generator).to(device)
    sums = {
        "edges.gather_sum": lambda: edges.gather_sum(h, weight),
        "gather, then reshape": lambda: (h[source] * weight[:, None]).view(NODES_ON_GPU, DEGREE, -1).sum(1),
        "gather, then index_add": lambda: torch.zeros_like(h).index_add_(0, target, h[source] * weight[:, None]),
    }
    products = {"edges.dot": lambda: edges.dot(h, h), "gather both": lambda: (h[target] * h[source]).sum(1)}
    return [
        _forward(f"{what}, {NODES_ON_GPU:,} × {DEGREE} edges × {CHANNELS}", ways, seconds / 2, device)
        for what, ways in (("weighted sum of neighbors", sums), ("dot product of each edge", products))
    ]


def _forward(title: str, ways: Mapping[str, Callable[[], Tensor]], seconds: float, device: str) -> Measurement:
    first = next(iter(ways))
    expected = ways[first]()
    return Measurement(
        title=f"{title} float32, forward, {machine(device)}",
        reference=first,
        rows=interleave(ways, reference=first, seconds=seconds, device=device),
        lower_bound=f"{NODES_ON_GPU * CHANNELS * 4 / 2**20:.0f} MiB of features read, and the result written",
        error=max(largest_difference([expected], [way()]) for way in ways.values()),
    )


def _reversal(index: Tensor, seconds: float) -> Measurement:
    """Measure the order of edges by source and its row pointer, which each backward pass along edges needs once."""

    def sort() -> tuple[Tensor, Tensor]:
        by_source, order = index[0].sort(stable=True)
        return order, torch.searchsorted(by_source, torch.arange(NODES + 1, device=index.device))

    def count() -> tuple[Tensor, Tensor]:
        sources = Segments(index[0], NODES, is_sorted=False)
        return sources.order, sources.ptr

    ways = {"edges.reversed": count, "torch sort, searchsorted": sort}
    return Measurement(
        title=f"order of {index.size(1):,} edges by source, with row pointer, {machine(index.device)}",
        reference="edges.reversed",
        rows=interleave(ways, reference="edges.reversed", seconds=seconds, device=index.device),
        lower_bound=f"{8 * index.size(1) / 2**20:.1f} MiB of sources read twice, as much written once",
        error=float(not all(map(torch.equal, count(), sort()))),
    )


def _sums(edges: Edges) -> dict[str, Function]:
    """Return functions that sum ``(E, C)`` messages to ``(N, C)`` by sorted targets."""
    from torch_geometric.utils import scatter

    target = edges.index[1]
    ways: dict[str, Function] = {
        "edges.sum": edges.sum,
        "reshape": lambda m: m.view(NODES, DEGREE, -1).sum(1),
        "index_add": lambda m: m.new_zeros(NODES, *m.shape[1:]).index_add_(0, target, m),
        "torch_geometric scatter": lambda m: scatter(m, target, 0, NODES, "sum"),
    }
    try:
        from torch_scatter import segment_csr
    except ImportError:
        return ways
    ptr = torch.arange(0, target.numel() + 1, DEGREE, device=target.device)
    return ways | {"torch_scatter segment_csr": lambda m: segment_csr(m, ptr, reduce="sum")}


def _measure(
    title: str,
    ways: Mapping[str, Function],
    x: Tensor,
    *,
    seconds: float,
    lower_bound: str,
    least: Mapping[str, Callable[[], object]],
) -> Measurement:
    generator = torch.Generator(x.device).manual_seed(1)
    cotangent = torch.randn(NODES, CHANNELS, generator=generator, device=x.device)
    timed = {name: forward_backward(way, x, cotangent) for name, way in ways.items()}
    first = next(iter(timed))
    outcomes = [run() for run in timed.values()]
    return Measurement(
        title=f"{title} float32, forward and backward, {machine(x.device)}",
        reference=first,
        rows=interleave({**timed, **least}, reference=first, seconds=seconds, device=x.device),
        lower_bound=lower_bound,
        error=max(largest_difference(outcomes[0], o) for o in outcomes),
    )
