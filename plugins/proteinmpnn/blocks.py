"""Work on edges: all at once with gradients, else a block at a time, in memory that the next block overwrites.

Two tensors of 2048 edges × 128 channels, float32, are 2 MB and stay in a core's cache; a thread works on that many.
Tensors of all edges are new memory, which costs more than the arithmetic between two products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import functional

from protgraph import Edges

__all__ = ["EDGES_PER_THREAD", "EdgeBlock", "split_edges", "map_blocks"]

#: Edges that one thread works on at once.
EDGES_PER_THREAD = 2048


class EdgeBlock:
    """Some nodes and the edges that enter them.

    Parameters
    ----------
    edges : Edges
        Those edges: targets counted within the block, sources not.
    nodes, rows : slice
        Which of all nodes and of all edges.
    memory : Tensor, optional
        ``(2, …)``, room for two tensors of the block; None where gradients need what would be overwritten.
    """

    def __init__(self, edges: Edges, nodes: slice, rows: slice, memory: Tensor | None = None) -> None:
        self.edges, self.nodes, self.rows, self.memory = edges, nodes, rows, memory

    def room(self, number: int, width: int) -> Tensor | None:
        """Where to write ``(E', width)``, for ``out=``; what was there is gone. None: somewhere new."""
        if self.memory is None:
            return None
        n = self.edges.num_edges
        return self.memory[number, : n * width].view(n, width)

    def over(self, z: Tensor) -> Tensor | None:
        """z, for ``out=``, where it may be overwritten; else None."""
        return None if self.memory is None else z

    def pair(self, of_target: Tensor, of_source: Tensor) -> Tensor:
        """``a_i + b_j``, ``(N, C)`` of targets and a table ``(…, C)`` of sources to ``(E', C)``; in room 0."""
        k, a = self.edges.degree, of_target[self.nodes]
        z = torch.index_select(of_source, 0, self.edges.index[0], out=self.room(0, of_source.size(1)))
        if k is None:
            return z.add_(self.edges.target(a))
        z.view(len(a), k, z.size(1)).add_(a.unsqueeze(1))
        return z

    def gelu(self, z: Tensor) -> Tensor:
        """GELU by erf; over z where it may be overwritten."""
        return functional.gelu(z) if self.memory is None else torch.ops.aten.gelu_(z)

    def sum(self, m: Tensor) -> Tensor:
        """``Σ_j m_ij``, ``(E', C)`` to ``(N', C)``."""
        n, k = self.edges.num_nodes, self.edges.degree
        return self.edges.sum(m) if k is None else m.view(n, k, m.size(1)).sum(1)


def split_edges(edges: Edges, like: Tensor, width: int) -> list[EdgeBlock]:
    """Blocks of some 2000 edges a thread on the CPU without gradients, else one.

    Parameters
    ----------
    edges : Edges
    like : Tensor
        Whose type and device the memory has.
    width : int
        Of the widest tensor that is asked for room.
    """
    n, total = edges.num_nodes, edges.num_edges
    if torch.is_grad_enabled() or like.device.type != "cpu" or not total:
        return [EdgeBlock(edges, slice(0, n), slice(0, total))]
    number = min(-(-total // (EDGES_PER_THREAD * torch.get_num_threads())), n)
    cuts = [n * part // number for part in range(number + 1)]
    nodes = [slice(*pair) for pair in pairwise(cuts)]
    rows = [slice(*pair) for pair in pairwise(edges.ptr[cuts].tolist())]
    memory = like.new_empty(2, width * max(r.stop - r.start for r in rows))
    return [EdgeBlock(_some(edges, i, r), i, r, memory) for i, r in zip(nodes, rows, strict=True)]


def _some(edges: Edges, nodes: slice, rows: slice) -> Edges:
    index = edges.index[:, rows]
    if edges.degree is None:
        index = torch.stack([index[0], index[1] - nodes.start])
    return Edges(index, nodes.stop - nodes.start, degree=edges.degree, num_sources=edges.num_sources)


def map_blocks(parts: Sequence[EdgeBlock], work: Callable[[EdgeBlock], Tensor], rows: int) -> Tensor:
    """What ``work`` makes of each block, one below the other: ``(rows, C)``."""
    made = work(parts[0])
    if len(parts) == 1:
        return made
    whole, end = made.new_empty(rows, made.size(1)), len(made)
    whole[:end] = made
    for part in parts[1:]:
        made = work(part)
        whole[end : end + len(made)] = made
        end += len(made)
    return whole
