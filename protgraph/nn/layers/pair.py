"""Layers for pair features: embedding from residues and offsets, and outer product mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import OptionError, WiringError
from protgraph.nn.module import LOOPS_OVER_PROTEINS, GraphLayer
from protgraph.nn.positional_encoding import offset_bins

__all__ = ["OuterProductMean", "PairEmbed"]
ENTRY_POINTS = {"protgraph.layers": {"outer_product_mean": "OuterProductMean", "pair_embed": "PairEmbed"}}


class PairEmbed(GraphLayer):
    """Initial pair features ``z_ij = A h_i + B h_j + P[clip(p_j - p_i, ±reach)] + E e_ij``.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
        Specs of the wired input fields, by local name.
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

    def __init__(self, fields: Mapping[str, FieldSpec], *, dim: int = 32, reach: int = 32) -> None:
        super().__init__(fields)
        if reach < 1:
            raise OptionError(f"reach={reach} must be at least 1.")
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
    fields : mapping of str to FieldSpec
        Specs of the wired input fields, by local name.
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
