"""From vectors to scalars: ``invariants``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from torch import Tensor

from protgraph.data.graph.fields import FieldSpec
from protgraph.nn.invariant import invariant_width, invariants, invariants_are_chiral
from protgraph.nn.module import GraphLayer

__all__ = ["Invariants"]
ENTRY_POINTS = {"protgraph.layers": {"invariants": "Invariants"}}


class Invariants(GraphLayer):
    """``h' = [h^(l=0), |h^(l>0)|]``: scalars stay, each channel of l > 0 gives its norm.

    Notes
    -----
    Reads: h ``(N, D)``, any irreps, or a field with trailing shape ``(V, 3)`` such as ``orientation``.
    Writes: h ``(N, M)``, ``M x 0e``, one column a channel. Pseudoscalars (0o) stay as they are, so the result is
    chiral where there are some. The gradient is 0 where a vector is 0.
    """

    reads: ClassVar[tuple[str, ...]] = ("h",)
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(self, fields: Mapping[str, FieldSpec]) -> None:
        super().__init__(fields)
        spec = fields["h"]
        self.declare(h=FieldSpec("h", spec.level, f"{invariant_width(spec)}x0e", chiral=invariants_are_chiral(spec)))

    def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {"h": invariants(f["h"].flatten(1), self.fields["h"])}
