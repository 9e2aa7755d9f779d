"""Tiles of neighbors that fit in the cache: a few target nodes with their incoming edges in ``(n, K)`` slots.

On a CPU, a kernel that gathers, computes and reduces one tile after another writes no tensor of edges × channels to
memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from protgraph.ops.spmm import Adjacency

__all__ = ["NeighborTile", "neighbor_tiles"]


def _entries() -> int:
    """Return the numbers per tile of gathered rows: 2^18 per thread, 1 MiB as float32.

    Smaller tiles cost more in calls than they save in cache.
    """
    return 2**18 * torch.get_num_threads()


@dataclass(frozen=True, eq=False)
class NeighborTile:
    """Consecutive target nodes with their incoming edges, padded to the same number of slots.

    Parameters
    ----------
    nodes, edges : slice
        n target nodes and their incoming edges.
    slots : int
        Largest number of incoming edges of these nodes, K.
    sources : Tensor
        ``(n K,)`` int64, source of each slot; 0 where padded.
    place : Tensor, optional
        ``(n K,)`` int64, edge of each slot; None: every node has K edges.
    mask : Tensor, optional
        ``(n, K)`` bool, False where padded; None like ``place``.
    """

    nodes: slice
    edges: slice
    slots: int
    sources: Tensor
    place: Tensor | None = None
    mask: Tensor | None = None

    def take(self, m: Tensor) -> Tensor:
        """Return rows of edges by slot, ``(E, C)`` to ``(n, K, C)``; padded slots have the row of another edge."""
        rows = m[self.edges] if self.place is None else m.index_select(0, self.place)
        return rows.view(-1, self.slots, m.size(1))

    def take_heads(self, m: Tensor) -> Tensor:
        """Return columns of edges by node, ``(H, E)`` to ``(n, H, K)``, 0 where padded."""
        rows = m[:, self.edges] if self.place is None else m.index_select(1, self.place)
        rows = rows.unflatten(1, (-1, self.slots)).transpose(0, 1)
        return rows if self.mask is None else rows * self.mask.unsqueeze(1)

    def softmax(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Compute softmax over the edges of each node, 0 where padded, from ``(n, H, K)``; and log-sum-exp ``(n, H)``.

        Without edges, the log-sum-exp is -inf.
        """
        if self.mask is not None:
            logits = logits.masked_fill(~self.mask.unsqueeze(1), -torch.inf)
        top = logits.amax(2, keepdim=True)
        if self.mask is not None:
            top = top.clamp(min=torch.finfo(top.dtype).min)  # without edges
        weight = (logits - top).exp_()
        total = weight.sum(2, keepdim=True)
        log_total = (top + total.log()).squeeze(2)
        return weight.div_(total.clamp_(min=1)), log_total  # the largest weight is 1, unless there are no edges

    def gather(self, x: Tensor, out: Tensor) -> Tensor:
        """Gather the rows of the sources, ``x (N, C)`` to ``(n K, C)``, in the first rows of ``out (≥ n K, C)``."""
        return torch.index_select(x, 0, self.sources, out=out[: len(self.sources)])

    def put(self, out: Tensor, m: Tensor) -> None:
        """Write slots ``m (n, K, C)`` to the rows of their edges in ``out (E, C)``."""
        out[self.edges] = m.flatten(0, 1) if self.mask is None else m[self.mask]

    def put_heads(self, out: Tensor, m: Tensor) -> None:
        """Write ``m (n, H, K)`` to the columns of their edges in ``out (H, E)``."""
        rows = m.transpose(0, 1).flatten(1)  # (H, n K)
        out[:, self.edges] = rows if self.mask is None else rows[:, self.mask.flatten()]


def neighbor_tiles(edges: Adjacency, width: int) -> list[NeighborTile]:
    """Divide the edges of CPU tensors into tiles of about 2^18 numbers per thread for ``width`` channels.

    Nodes without edges, if all nodes of their tile are, are in no tile.
    """
    degree = edges.degree or -(-edges.num_edges // max(edges.num_nodes, 1))  # mean, rounded up
    size = max(1, _entries() // max(1, width * degree))
    if edges.degree:
        starts = range(0, edges.num_nodes, size)
        return [_regular(edges, first, min(first + size, edges.num_nodes), edges.degree) for first in starts]
    ptr, tiles = edges.ptr.tolist(), []
    for first in range(0, edges.num_nodes, size):
        last = min(first + size, edges.num_nodes)
        if ptr[first] < ptr[last]:
            tiles.append(_padded(edges, first, last, slice(ptr[first], ptr[last])))
    return tiles


def _regular(edges: Adjacency, first: int, last: int, degree: int) -> NeighborTile:
    part = slice(first * degree, last * degree)
    return NeighborTile(slice(first, last), part, degree, edges.index[0, part])


def _padded(edges: Adjacency, first: int, last: int, part: slice) -> NeighborTile:
    start, stop = edges.ptr[first:last, None], edges.ptr[first + 1 : last + 1, None]  # (n, 1)
    slots = int((stop - start).max())
    place = start + torch.arange(slots)
    mask = place < stop  # (n, K)
    place = place.clamp(max=part.stop - 1).flatten()
    sources = edges.index[0].index_select(0, place).masked_fill(~mask.flatten(), 0)
    return NeighborTile(slice(first, last), part, slots, sources, place, mask)
