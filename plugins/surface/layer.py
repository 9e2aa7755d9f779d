"""Messages with weights between surface points, and from points to residues: ``surface_message``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from protgraph import FieldSpec, GraphLayer
from protgraph.data import Conformity
from protgraph.nn import activation
from protgraph.ops import cosine_cutoff

__all__ = ["SurfaceMessage"]
ENTRY_POINTS = {"protgraph.layers": {"surface_message": "SurfaceMessage"}}


class SurfaceMessage(GraphLayer):
    """Message passing in which each source has a weight: points at a rim fade out instead of vanishing.

    ``m_i = Σ_j w_ij act(W₁ h_i + W₂ s_j + W₃ e_ij + b) / (1 + Σ_j w_ij)`` with ``w_ij = a_j u(d_ij)``, and
    ``h'_i = W₆ act(W₅ [h_i, m_i] + b₅) + b₆``. The weight of a point is a, u falls from 1 to 0 at the cutoff.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
    dim : int
        Width of the messages and of the output.
    cutoff : float
        Å, where u reaches 0: the radius of the edges. Without ``edge_dist``, u is 1.
    act : str
        Activation function.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` and ``source_h`` ``(M, D)`` scalars; ``source_point_weight`` ``(M, 1)``; ``edges``.
    Optional: ``edge_attr`` ``(E, F)`` scalars, ``edge_dist`` ``(E, 1)``, Å.
    Writes: ``h`` ``(N, dim)``, ``dim x 0e``.

    The 1 in the denominator keeps the message of a residue continuous when its last point disappears, and makes that
    of few points smaller than that of many.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "source_h", "source_point_weight", "edges")
    optional: ClassVar[tuple[str, ...]] = ("edge_attr", "edge_dist")
    writes: ClassVar[tuple[str, ...]] = ("h",)
    conformity: ClassVar[Conformity] = Conformity(
        inputs={"source_point_weight": FieldSpec("source_point_weight", "node", "1x0e")},
        nonnegative=("source_point_weight",),
    )

    def __init__(
        self, fields: Mapping[str, FieldSpec], *, dim: int = 64, cutoff: float = 6.0, act: str = "gelu"
    ) -> None:
        super().__init__(fields)
        width = self.scalar_width("h")
        edge_width = self.scalar_width("edge_attr")
        self.cutoff = cutoff
        self.target = nn.Linear(width, dim)
        self.source = nn.Linear(self.scalar_width("source_h"), dim, bias=False)
        self.edge = nn.Linear(edge_width, dim, bias=False) if edge_width else None
        self.act = activation(act)
        self.update = nn.Sequential(nn.Linear(width + dim, dim), activation(act), nn.Linear(dim, dim))
        self.declare(h=f"{dim}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)`` of the targets of the edges."""
        h, edges = f["h"], f["edges"]
        weight = edges.source(f["source_point_weight"].to(h.dtype))  # (E, 1)
        if "edge_dist" in f:
            weight = weight * cosine_cutoff(f["edge_dist"].to(h.dtype), self.cutoff)
        z = edges.target(self.target(h)) + edges.source(self.source(f["source_h"]))  # (E, dim)
        if self.edge is not None:
            z = z + self.edge(f["edge_attr"])
        message = edges.sum(weight * self.act(z)) / (1 + edges.sum(weight))  # (N, dim)
        return {"h": self.update(torch.cat([h, message], 1))}
