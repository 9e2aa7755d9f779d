"""Evoformer block for one sequence: residue and pair features (Jumper et al. 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.fields import FieldSpec
from protgraph.nn.layers.pair import OuterProductMean
from protgraph.nn.layers.triangle import TriangleAttention, TriangleMultiplication, pair_width
from protgraph.nn.mlp import mlp
from protgraph.nn.module import LOOPS_OVER_PROTEINS, GraphLayer
from protgraph.nn.multihead import MultiHeadAttention

__all__ = ["EvoformerPair"]
ENTRY_POINTS = {"protgraph.layers": {"evoformer_pair": "EvoformerPair"}}


class EvoformerPair(GraphLayer):
    """Evoformer block on residue features h and pair features z of one sequence.

    ``h ← h + row attention(h, z)``, ``h ← h + transition(h)``, ``z ← z + outer product mean(h)``; then z ← z + each of
    triangle multiplication (outgoing, incoming), triangle attention (starting, ending node), transition.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
        Specs of the wired input fields, by local name.
    heads : int
        Number of attention heads of residues.
    pair_heads : int
        Number of attention heads of triangles.
    hidden : int
        Width of the factors of the outer product.
    factor : int
        Width of the hidden layers of transitions, as a multiple of their input.
    dropout : float
        Dropout probability of the updates by row attention and triangles.
    backend : {"torch", "cuequivariance"}
        Implementation of the triangle layers.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars; ``pair`` ``(P, D)`` scalars; ``proteins``.
    Writes: ``h`` ``(N, C)``; ``pair`` ``(P, D)``.

    Deviations from the paper: one sequence instead of an alignment, hence no column attention; dropout is not shared
    along rows or columns; last linear maps are not initialized to 0. The normalization of z before its bias has no bias
    of its own, which the softmax would cancel.

    References
    ----------
    Jumper et al. 2021, doi:10.1038/s41586-021-03819-2, supplement, algorithm 6: lines 2, 4 and 5–10.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "pair", "proteins")
    writes: ClassVar[tuple[str, ...]] = ("h", "pair")
    conformity: ClassVar[Conformity] = Conformity(expected_failures=LOOPS_OVER_PROTEINS)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        heads: int = 4,
        pair_heads: int = 4,
        hidden: int = 16,
        factor: int = 4,
        dropout: float = 0.0,
        backend: str = "torch",
    ) -> None:
        super().__init__(fields)
        width, pair = self.scalar_width("h"), pair_width(self)
        self.norm, self.pair_norm = nn.LayerNorm(width), nn.LayerNorm(pair, bias=False)
        self.attention = MultiHeadAttention(fields, width, dim=width, heads=heads, gate=True, bias=False)
        self.transition = _transition(width, factor)
        self.outer = OuterProductMean(fields, dim=pair, hidden=hidden)
        self.triangles = nn.ModuleList(
            [
                *(TriangleMultiplication(fields, edges=edges, backend=backend) for edges in ("outgoing", "incoming")),
                *(
                    TriangleAttention(fields, heads=pair_heads, node=node, backend=backend)
                    for node in ("starting", "ending")
                ),
            ]
        )
        self.pair_transition = _transition(pair, factor)
        self.dropout = nn.Dropout(dropout)
        self.declare(h=f"{width}x0e", pair=FieldSpec("pair", "pair", f"{pair}x0e"))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Update ``h (N, dim)`` and ``pair (P, dim)`` by one block."""
        h, z, proteins = f["h"], f["pair"], f["proteins"]
        inputs = {"pair": self.pair_norm(z), "proteins": proteins}
        h = h + self.dropout(self.attention(self.norm(h), inputs))  # line 2
        h = h + self.transition(h)  # line 4
        z = z + self.outer({"h": h, "proteins": proteins})["pair"]  # line 5
        for triangle in self.triangles:  # lines 6–9
            z = z + self.dropout(triangle({"pair": z, "proteins": proteins})["pair"])
        return {"h": h, "pair": z + self.pair_transition(z)}  # line 10


def _transition(width: int, factor: int) -> nn.Sequential:
    """Build a transition, algorithms 9 and 15."""
    return nn.Sequential(nn.LayerNorm(width), mlp([width, factor * width, width], act="relu"))
