"""Layer: from named fields to named fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

import protgraph as pg

__all__ = ["TemplateMean"]


class TemplateMean(pg.GraphLayer):
    """Linear map of a node and of the mean of its neighbors: ``h'_i = W h_i + b + U mean_{j → i} h_j``.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
        Available fields; h has scalars of any width.
    dim : int
        Width of the output.

    Notes
    -----
    Reads: h ``(N, C)``, edges. Writes: h ``(N, dim)``, ``dim x 0e``.

    References
    ----------
    Hamilton, Ying & Leskovec 2017, arXiv:1706.02216, sec. 3.1 (mean aggregator, concatenation as two matrices).
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edges")
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(self, fields: Mapping[str, pg.FieldSpec], *, dim: int = 64) -> None:
        super().__init__(fields)
        width = self.scalar_width("h")
        self.root = nn.Linear(width, dim)
        self.neighbors = nn.Linear(width, dim, bias=False)
        self.declare(h=f"{dim}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)`` from each node and the mean of its neighbors."""
        edges = f["edges"]
        mean = edges.mean(edges.source(f["h"]))  # (E, C) to (N, C)
        return {"h": self.root(f["h"]) + self.neighbors(mean)}  # (N, dim)
