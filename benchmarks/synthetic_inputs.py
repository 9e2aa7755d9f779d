"""Synthetic proteins with the density of real ones, and functions that run and compare forward and backward passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from protgraph.data.graph.fields import FieldSpec
from protgraph.data.graph.protein_graph import ProteinGraph
from protgraph.structure.neighbors.search import knn

__all__ = ["DENSITY", "cloud", "forward_backward", "largest_difference", "machine", "protein", "scalars", "threads"]

# CA atoms per Å³ inside a folded protein: 0.73 cm³/g (Matthews 1968) and 110 Da per residue give one in 134 Å³.
DENSITY = 1 / 134


def cloud(n: int, *, seed: int = 0) -> np.ndarray:
    """Return ``(n, 3)`` float32 points, Å, uniform in a cube at the density of CA atoms."""
    return np.random.default_rng(seed).uniform(0, (n / DENSITY) ** (1 / 3), (n, 3)).astype(np.float32)


def protein(n: int, k: int, *, seed: int = 0) -> ProteinGraph:
    """Return a protein of n residues with k-nearest-neighbor edges and the fields that every graph has."""
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
    """Return the spec of a field of scalars; on edges if the name starts with ``edge``."""
    return FieldSpec(name, "edge" if name.startswith("edge") else "node", f"{width}x0e")


def threads() -> str:
    """Return the number of threads of torch, for titles."""
    n = torch.get_num_threads()
    return "1 thread" if n == 1 else f"{n} threads"


def machine(device: torch.device | str) -> str:
    """Return the number of threads, or the name of the GPU, for titles."""
    return torch.cuda.get_device_name(device) if torch.device(device).type == "cuda" else threads()


def forward_backward(
    function: Callable[[Tensor], Tensor], x: Tensor, cotangent: Tensor, weights: Sequence[nn.Parameter] = ()
) -> Callable[[], tuple[Tensor, ...]]:
    """Return a function that computes ``y = function(x)`` and the gradients of ``<cotangent, y>``."""

    def run() -> tuple[Tensor, ...]:
        y = function(x)
        return y.detach(), *torch.autograd.grad(y, [x, *weights], cotangent)

    return run


def largest_difference(a: Sequence[Tensor], b: Sequence[Tensor]) -> float:
    """Compute the largest difference of two results, each tensor relative to its largest value."""
    return max(float((x - y).abs().max() / x.abs().max()) for x, y in zip(a, b, strict=True))
