"""Case of ``python -m benchmarks layers``: two implementations of one layer on the same input.

Each ``cases_<family>.py`` has ``CASES``: name of a layer → function from :class:`LayerInputs` to :class:`SpeedCase`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from torch import nn

    from protgraph.ops import Edges, Proteins

__all__ = ["LayerInputs", "SpeedCase", "leaf"]


@dataclass(frozen=True)
class LayerInputs:
    """Input of all layers.

    Parameters
    ----------
    pos : Tensor
        ``(N, 3)`` Å.
    edges, proteins
        Edges and proteins of the batch.
    h, e : Tensor
        ``(N, width)`` and ``(E, edge width)`` scalars; h requires a gradient.
    """

    pos: Tensor
    edges: Edges
    proteins: Proteins
    h: Tensor
    e: Tensor

    @property
    def vec(self) -> Tensor:
        """``(E, 3)``, pos[j] - pos[i]."""
        return self.pos[self.edges.index[0]] - self.pos[self.edges.index[1]]


@dataclass(frozen=True)
class SpeedCase:
    """Two implementations of one layer with the same weights.

    Parameters
    ----------
    ours, theirs : callable
        Function from x to the output.
    x : Tensor
        Input, which requires a gradient.
    layer, other : Module
        Modules whose parameters require gradients.
    peer : str
        Name of the other implementation.
    channels : str
        Width of the features, as text.
    products : tuple of (float, float, str)
        Least number of multiplications of the forward pass: per node, per edge, and a description.
    """

    ours: Callable[[Tensor], Tensor]
    layer: nn.Module
    peer: str
    theirs: Callable[[Tensor], Tensor]
    other: nn.Module
    x: Tensor
    channels: str
    products: tuple[float, float, str]


def leaf(*parts: Tensor) -> Tensor:
    """Join fields ``(N, …)`` to one input ``(N, C)``, which requires a gradient."""
    return torch.cat([part.detach().flatten(1) for part in parts], 1).requires_grad_()
