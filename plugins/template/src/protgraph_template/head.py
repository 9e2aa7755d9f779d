"""Head: the last layer, which writes the logits of a target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

import protgraph as pg

__all__ = ["TemplateClassifier"]


class TemplateClassifier(pg.Head):
    """``logits_i = V relu(W h_i + b) + c``: one of C classes per residue.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
        Available fields; h has scalars of any width.
    target : Target
        Target with C classes.
    dim : int
        Width of the hidden layer.

    Notes
    -----
    Reads: h ``(N, F)``. Writes: logits ``(N, C)``, unnormalized log-probabilities.
    """

    reads: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(self, fields: Mapping[str, pg.FieldSpec], target: pg.Target, *, dim: int = 64) -> None:
        super().__init__(fields, target)
        self.mlp = nn.Sequential(nn.Linear(self.scalar_width("h"), dim), nn.ReLU(), nn.Linear(dim, target.size))
        self.declare(logits=f"{target.size}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``logits (N, C)`` of each node."""
        return {"logits": self.mlp(f["h"])}  # (N, C)
