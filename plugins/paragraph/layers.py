"""EGNN layer without coordinate updates, as in Paragraph: ``paragraph_layer``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import hardtanh, silu

from protgraph import FieldSpec, GraphLayer

__all__ = ["ParagraphLayer"]
ENTRY_POINTS = {"protgraph.layers": {"paragraph_layer": "ParagraphLayer"}}

SMALL = 1e-2  # standard deviation of initial weights, since squared distances are in the thousands


class ParagraphLayer(GraphLayer):
    """Messages ``m_ij = φ_e(h_i, h_j, |x_i - x_j|², e_ij)``, then ``h_i ← hardtanh(h_i + φ_h(h_i, Σ_j m_ij))``.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
    message : int
        Width of m.

    Notes
    -----
    Reads: h ``(N, C)`` and edge_attr ``(E, D)`` scalars, pos ``(N, 3)``, edges. Writes: h ``(N, C)``.

    φ_e has one hidden layer of twice its input width and two SiLU, φ_h one of width 2 C and one SiLU. The linear maps
    of h in φ_e are computed on nodes.

    References
    ----------
    Chinery et al. 2023, doi:10.1093/bioinformatics/btac732; Satorras et al. 2021, arXiv:2102.09844, eqs. 3, 5 and 6.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "pos", "edges", "edge_attr")
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(self, fields: Mapping[str, FieldSpec], *, message: int = 16) -> None:
        super().__init__(fields)
        dim = self.scalar_width("h")
        edge = self.scalar_width("edge_attr")
        hidden = 2 * (2 * dim + 1 + edge)
        self.target = nn.Linear(dim, hidden)
        self.source = nn.Linear(dim, hidden, bias=False)
        self.edge = nn.Linear(1 + edge, hidden, bias=False)
        self.message = nn.Linear(hidden, message)
        self.node = nn.Sequential(nn.Linear(dim + message, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, dim))
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=SMALL)
        self.declare(h=f"{dim}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, C)``: an EGNN layer without motion, clipped to −1 … 1."""
        h, pos, edges = f["h"], f["pos"], f["edges"]

        # Messages of both nodes and the distance.
        vector = edges.target(pos) - edges.source(pos)
        squared = vector.square().sum(1, keepdim=True)  # (E, 1)
        e = self.edge(torch.cat([squared, f["edge_attr"]], 1))
        hidden = silu(edges.pair_sum(self.target(h), self.source(h), e))
        message = silu(self.message(hidden))

        update = self.node(torch.cat([h, edges.sum(message)], 1))
        return {"h": hardtanh(h + update)}
