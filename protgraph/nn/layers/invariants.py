"""Layer of rotation-invariant scalars of features with vectors or higher degrees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor

from protgraph.data.graph.fields import FieldSpec
from protgraph.nn.invariant import invariant_width, invariants, invariants_are_chiral
from protgraph.nn.module import GraphLayer

__all__ = ["Invariants"]
ENTRY_POINTS = {"protgraph.layers": {"invariants": "Invariants"}}


class Invariants(GraphLayer):
    """Rotation-invariant scalars ``h' = [h^(l=0), |h^(l>0)|]``: scalars, and the norm of each other channel.

    Notes
    -----
    Reads: ``h`` ``(N, D)``, any irreps, or a field of shape ``(N, V, 3)``, e.g. ``orientation``.
    Writes: ``h`` ``(N, M)``, ``M x 0e``, one column per channel.

    Pseudoscalars (0o) are kept, so the output is chiral if there are some. The gradient is 0 where a vector is 0.
    """

    reads: ClassVar[tuple[str, ...]] = ("h",)
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(self, fields: Mapping[str, FieldSpec]) -> None:
        super().__init__(fields)
        spec = fields["h"]
        self.declare(h=FieldSpec("h", spec.level, f"{invariant_width(spec)}x0e", chiral=invariants_are_chiral(spec)))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)``: scalars, and norms of all other irreps."""
        return {"h": invariants(f["h"].flatten(1), self.fields["h"])}
