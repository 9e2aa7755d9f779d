"""Process edges in blocks with reused buffers on the CPU without gradients; all edges at once otherwise.

Two float32 tensors of 2048 edges × 128 channels take 2 MB and fit the cache of a core. Allocating tensors of all edges
costs more time than the arithmetic between two matrix products.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import functional

from protgraph import Edges

__all__ = ["EDGES_PER_THREAD", "EdgeBlock", "split_edges", "map_blocks"]

#: Edges per thread and block.
EDGES_PER_THREAD = 2048


class EdgeBlock:
    """A range of nodes and their incoming edges.

    Parameters
    ----------
    edges : Edges
        Edges with targets numbered within the block, sources not.
    nodes, rows : slice
        Ranges of all nodes and of all edges.
    memory : Tensor, optional
        ``(2, …)``, buffers for two tensors of the block; None if gradients need the intermediate values.
    """

    def __init__(self, edges: Edges, nodes: slice, rows: slice, memory: Tensor | None = None) -> None:
        self.edges, self.nodes, self.rows, self.memory = edges, nodes, rows, memory

    def buffer(self, number: int, width: int) -> Tensor | None:
        """Return the buffer ``(E', width)`` for ``out=``, which overwrites its content, or None for new memory."""
        if self.memory is None:
            return None
        n = self.edges.num_edges
        return self.memory[number, : n * width].view(n, width)

    def reuse(self, z: Tensor) -> Tensor | None:
        """Return z for ``out=`` if it may be overwritten, ``(E', C)`` to the same shape, else None."""
        return None if self.memory is None else z

    def pair(self, of_target: Tensor, of_source: Tensor) -> Tensor:
        """Compute ``a_i + b_j``, ``(E', C)``, from ``of_target (N, C)`` and ``of_source (…, C)``; in buffer 0."""
        k = self.edges.degree
        a = of_target[self.nodes]
        z = torch.index_select(of_source, 0, self.edges.index[0], out=self.buffer(0, of_source.size(1)))
        if k is None:
            return z.add_(self.edges.target(a))
        z.view(len(a), k, z.size(1)).add_(a.unsqueeze(1))
        return z

    def gelu(self, z: Tensor) -> Tensor:
        """Compute GELU with erf, ``(E', C)`` to the same shape, in place if z may be overwritten."""
        return functional.gelu(z) if self.memory is None else torch.ops.aten.gelu_(z)

    def sum(self, m: Tensor) -> Tensor:
        """Compute ``Σ_j m_ij``, ``(E', C)`` to ``(N', C)``."""
        n, k = self.edges.num_nodes, self.edges.degree
        return self.edges.sum(m) if k is None else m.view(n, k, m.size(1)).sum(1)


def split_edges(edges: Edges, like: Tensor, width: int) -> list[EdgeBlock]:
    """Split edges into blocks of about 2000 edges per thread on the CPU without gradients, else into one block.

    Parameters
    ----------
    edges : Edges
    like : Tensor
        Tensor of any shape with the dtype and device of the buffers.
    width : int
        Width of the widest buffered tensor.
    """
    n = edges.num_nodes
    total = edges.num_edges
    needs_all_values = torch.compiler.is_compiling() or torch.is_grad_enabled()
    if needs_all_values or like.device.type != "cpu" or total == 0:
        return [EdgeBlock(edges, slice(0, n), slice(0, total))]
    edges_at_once = EDGES_PER_THREAD * torch.get_num_threads()
    number = min(math.ceil(total / edges_at_once), n)
    cuts = [n * place // number for place in range(number + 1)]
    nodes = [slice(*pair) for pair in pairwise(cuts)]
    rows = [slice(*pair) for pair in pairwise(edges.ptr[cuts].tolist())]
    longest = max(some.stop - some.start for some in rows)
    memory = like.new_empty(2, width * longest)
    return [EdgeBlock(_some(edges, i, r), i, r, memory) for i, r in zip(nodes, rows, strict=True)]


def _some(edges: Edges, nodes: slice, rows: slice) -> Edges:
    source, target = edges.index[:, rows]
    index = torch.stack([source, target - nodes.start])
    return Edges(index, nodes.stop - nodes.start, degree=edges.degree, num_sources=edges.num_sources)


def map_blocks(blocks: Sequence[EdgeBlock], work: Callable[[EdgeBlock], Tensor], rows: int) -> Tensor:
    """Apply ``work`` to each block and concatenate the results to ``(rows, C)``."""
    result = work(blocks[0])
    if len(blocks) == 1:
        return result
    joined, end = result.new_empty(rows, result.size(1)), len(result)
    joined[:end] = result
    for block in blocks[1:]:
        result = work(block)
        joined[end : end + len(result)] = result
        end += len(result)
    return joined
