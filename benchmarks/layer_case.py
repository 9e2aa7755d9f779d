"""What ``protgraph speed layers`` measures: one layer in two ways, on one scene.

A plugin offers its own through the entry-point group ``protgraph.speed``: name → function from :class:`LayerInputs` to
:class:`SpeedCase`, as ``plugins/gearnet/speed.py`` has them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # names of measurements are listed without torch
    from torch import Tensor, nn

    from protgraph.ops import Edges, Proteins

__all__ = ["SpeedCase", "LayerInputs"]


@dataclass(frozen=True)
class LayerInputs:
    """What all layers are given.

    Parameters
    ----------
    pos : Tensor
        ``(N, 3)`` Å.
    edges, proteins
        Of the batch.
    h, e : Tensor
        ``(N, width)`` and ``(E, edge width)`` scalars; h asks for its gradient.
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
    """One layer in two ways.

    Parameters
    ----------
    ours, theirs : callable
        From x to the layer's result.
    x : Tensor
        The input, of which gradients are asked.
    layer, other : Module
        Whose parameters get gradients.
    peer : str
        What the other way is called.
    channels : str
        Of h.
    products : tuple of (float, float, str)
        Multiplications that the formula takes at least, forward: per node, per edge, and which.
    """

    ours: Callable[[Tensor], Tensor]
    layer: nn.Module
    peer: str
    theirs: Callable[[Tensor], Tensor]
    other: nn.Module
    x: Tensor
    channels: str
    products: tuple[float, float, str]
