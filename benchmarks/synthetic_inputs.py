"""Made-up proteins for measurements, as dense as real ones, and how forward and backward are timed and compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from protgraph.data.graph.fields import FieldSpec
from protgraph.data.graph.protein_graph import ProteinGraph
from protgraph.structure.neighbors.search import knn

__all__ = ["DENSITY", "apart", "cloud", "forward_backward", "protein", "scalars", "threads"]

# CA atoms per Å³ inside a folded protein: 0.73 cm³/g (Matthews 1968) and 110 Da a residue give one in 134 Å³.
DENSITY = 1 / 134


def cloud(n: int, *, seed: int = 0) -> np.ndarray:
    """``(n, 3)`` float32 points, Å, spread through a cube at the density of CA atoms."""
    return np.random.default_rng(seed).uniform(0, (n / DENSITY) ** (1 / 3), (n, 3)).astype(np.float32)


def protein(n: int, k: int, *, seed: int = 0) -> ProteinGraph:
    """A protein of n residues with its k nearest neighbors as edges and the fields that are always stored."""
    pos = torch.from_numpy(cloud(n, seed=seed))
    graph = ProteinGraph(
        pos=pos,
        aatype=torch.arange(n) % 20,
        masked=torch.zeros(n, dtype=torch.bool),
        chain=torch.zeros(n, dtype=torch.long),
        res_id=torch.arange(n),
        seq_pos=torch.arange(n),
        backbone=pos[:, None].repeat(1, 4, 1),
        backbone_mask=torch.ones(n, 4, dtype=torch.bool),
        edge_index=torch.from_numpy(knn(pos.numpy(), k)),
    )
    graph.name, graph.degree = f"{n}_{seed}", min(k, n - 1)
    return graph


def scalars(name: str, width: int) -> FieldSpec:
    """The spec of a field of plain scalars; ``edge_…`` lies on edges."""
    return FieldSpec(name, "edge" if name.startswith("edge") else "node", f"{width}x0e")


def threads() -> str:
    """How many threads torch uses, for titles."""
    n = torch.get_num_threads()
    return "1 thread" if n == 1 else f"{n} threads"


def forward_backward(
    way: Callable[[Tensor], Tensor], x: Tensor, cotangent: Tensor, weights: Sequence[nn.Parameter] = ()
) -> Callable[[], tuple[Tensor, ...]]:
    """A function that works out ``y = way(x)`` and the gradients of ``<cotangent, y>``; returns y and those."""

    def run() -> tuple[Tensor, ...]:
        y = way(x)
        return y.detach(), *torch.autograd.grad(y, [x, *weights], cotangent)

    return run


def apart(a: Sequence[Tensor], b: Sequence[Tensor]) -> float:
    """Largest difference of two outcomes, each tensor relative to its largest value."""
    return max(float((x - y).abs().max() / x.abs().max()) for x, y in zip(a, b, strict=True))
