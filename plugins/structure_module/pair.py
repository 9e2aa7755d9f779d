"""Pair features of one sequence: embedding, outer product mean, and the Evoformer block (Jumper et al. 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
from annotated_types import Ge
from protgraph_plugins.structure_module.triangle import (
    TriangleAttention,
    TriangleBackend,
    TriangleMultiplication,
    pair_width,
)
from torch import Tensor, nn

from protgraph.data.graph import Conformity, FieldSpec
from protgraph.errors import WiringError
from protgraph.nn import LOOPS_OVER_PROTEINS, GraphLayer, MultiHeadAttention, offset_bins

__all__ = ["EvoformerPair", "OuterProductMean", "PairEmbed"]
ENTRY_POINTS = {
    "protgraph.layers": {
        "evoformer_pair": "EvoformerPair",
        "outer_product_mean": "OuterProductMean",
        "pair_embed": "PairEmbed",
    }
}


class PairEmbed(GraphLayer):
    """Initial pair features ``z_ij = A h_i + B h_j + P[clip(p_j - p_i, ±reach)] + E e_ij``.

    Parameters
    ----------
    dim : int
        Width of z.
    reach : int
        Largest offset along the sequence with its own embedding.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars; ``seq_pos`` ``(N,)``; ``chain`` ``(N,)``; ``proteins``. Optional: ``edges``, whose
    pairs get a learned vector; with ``edge_attr`` ``(E, F)`` scalars also ``E e_ij``.
    Writes: ``pair`` ``(P, dim)``, ``dim x 0e``: all ordered pairs of each protein, row-major (i, then j), protein after
    protein.

    Pairs of different chains have one embedding, as in AlphaFold-Multimer.

    References
    ----------
    Jumper et al. 2021, doi:10.1038/s41586-021-03819-2, supplement, algorithms 3 and 4; Evans et al. 2021,
    doi:10.1101/2021.10.04.463034, algorithm 5.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "seq_pos", "chain", "proteins")
    optional: ClassVar[tuple[str, ...]] = ("edges", "edge_attr")
    writes: ClassVar[tuple[str, ...]] = ("pair",)
    conformity: ClassVar[Conformity] = Conformity(expected_failures=LOOPS_OVER_PROTEINS)

    def __init__(self, fields: Mapping[str, FieldSpec], *, dim: int = 32, reach: Annotated[int, Ge(1)] = 32) -> None:
        super().__init__(fields)
        if "edge_attr" in fields and "edges" not in fields:
            raise WiringError("pair_embed reads 'edge_attr' together with 'edges'. Wire both.")
        width, self.reach = self.scalar_width("h"), reach
        self.row, self.column = nn.Linear(width, dim), nn.Linear(width, dim, bias=False)
        self.offset = nn.Embedding(2 * reach + 2, dim)
        self.edge = nn.Parameter(torch.zeros(dim)) if "edges" in fields else None
        self.edge_attr = nn.Linear(self.scalar_width("edge_attr"), dim, bias=False) if "edge_attr" in fields else None
        self.declare(pair=FieldSpec("pair", "pair", f"{dim}x0e"))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``pair (P, dim)`` from both residues, their offset in sequence, and edges if they are read."""
        h, proteins = f["h"], f["proteins"]
        split = (proteins.split(x) for x in (self.row(h), self.column(h), f["seq_pos"], f["chain"]))
        parts = [self._pairs(*one) for one in zip(*split, strict=True)]
        z = torch.cat(parts)  # (P, dim)
        if self.edge is not None:
            edges = f["edges"]
            values = self.edge.expand(edges.num_edges, -1)
            if self.edge_attr is not None:
                values = values + self.edge_attr(f["edge_attr"])
            z = z.index_add(0, proteins.pair_index(edges.index[1], edges.index[0]), values)
        return {"pair": z}

    def _pairs(self, row: Tensor, column: Tensor, pos: Tensor, chain: Tensor) -> Tensor:
        bins = offset_bins(pos, pos, chain, chain, self.reach)  # (L, L)
        return (self.offset(bins) + row.unsqueeze(1) + column).flatten(0, 1)


class OuterProductMean(GraphLayer):
    """Outer product ``z_ij = W (a_i ⊗ b_j) + c`` with ``a = A norm(h)``, ``b = B norm(h)`` (Jumper et al. 2021).

    Parameters
    ----------
    dim : int
        Width of z.
    hidden : int
        Width of a and b.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars; ``proteins``. Writes: ``pair`` ``(P, dim)``, ``dim x 0e``.

    The paper's mean is over the sequences of an alignment; here there is one. ``W (a_i ⊗ b_j)`` is computed as
    ``(W a_i) b_j``, so that no pair has hidden² numbers. Parameters have the names of OpenFold's; its division by
    ``count + 0.001`` is omitted.

    References
    ----------
    Jumper et al. 2021, doi:10.1038/s41586-021-03819-2, supplement, algorithm 10.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "proteins")
    writes: ClassVar[tuple[str, ...]] = ("pair",)
    conformity: ClassVar[Conformity] = Conformity(expected_failures=LOOPS_OVER_PROTEINS)

    def __init__(self, fields: Mapping[str, FieldSpec], *, dim: int = 32, hidden: int = 16) -> None:
        super().__init__(fields)
        width = self.scalar_width("h")
        self.layer_norm = nn.LayerNorm(width)
        self.linear_1, self.linear_2 = nn.Linear(width, hidden), nn.Linear(width, hidden)
        self.linear_out = nn.Linear(hidden * hidden, dim)
        self.declare(pair=FieldSpec("pair", "pair", f"{dim}x0e"))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``pair (P, dim)``, a bilinear map of both residues."""
        proteins, h = f["proteins"], self.layer_norm(f["h"])
        a, b = self.linear_1(h), self.linear_2(h)  # (N, c), line 2
        weight = self.linear_out.weight.unflatten(1, (a.size(1), -1))  # (dim, c, c)
        half = torch.einsum("nx,dxy->ndy", a, weight)  # (N, dim, c)
        parts = zip(proteins.split(half), proteins.split(b), strict=True)
        pairs = [torch.einsum("idy,jy->ijd", one, other).flatten(0, 1) for one, other in parts]  # lines 3, 4
        return {"pair": torch.cat(pairs) + self.linear_out.bias}


class EvoformerPair(GraphLayer):
    """Evoformer block on residue features h and pair features z of one sequence.

    ``h ← h + row attention(h, z)``, ``h ← h + transition(h)``, ``z ← z + outer product mean(h)``; then z ← z + each of
    triangle multiplication (outgoing, incoming), triangle attention (starting, ending node), transition.

    Parameters
    ----------
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
        backend: TriangleBackend = "torch",
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
    hidden = factor * width
    perceptron = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Dropout(0.0), nn.Linear(hidden, width))
    return nn.Sequential(nn.LayerNorm(width), perceptron)
