"""Blocks of the Evoformer, and their repetition with recycling (Jumper et al. 2021, algorithms 6, 18 and 32)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
from annotated_types import Ge
from protgraph_plugins.evoformer.msa import (
    MsaColumnAttention,
    MsaColumnGlobalAttention,
    MsaOuterProductMean,
    MsaRowAttention,
    MsaTransition,
    msa_width,
)
from protgraph_plugins.structure_module import TriangleAttention, TriangleMultiplication
from torch import Tensor, nn

from protgraph.data.graph import Conformity, FieldSpec
from protgraph.nn import LOOPS_OVER_PROTEINS, GraphLayer

__all__ = ["Evoformer", "EvoformerBlock"]
ENTRY_POINTS = {"protgraph.layers": {"evoformer": "Evoformer"}}


class EvoformerBlock(nn.Module):
    """One block: updates of m by rows, columns and a transition, then of z by m, triangles and a transition.

    Parameters
    ----------
    layer : GraphLayer
        Layer with the specs of ``msa``, ``msa_mask``, ``pair`` and ``proteins``.
    global_columns : bool
        Attention of the mean of each column, as for extra sequences, in place of all pairs of sequences.
    """

    def __init__(
        self,
        layer: GraphLayer,
        *,
        heads: int,
        pair_heads: int,
        hidden: int,
        dropout: float,
        chunk: int | None,
        global_columns: bool,
    ) -> None:
        super().__init__()
        fields, pair = layer.fields, layer.scalar_width("pair")
        columns = MsaColumnGlobalAttention if global_columns else MsaColumnAttention
        chunked: dict[str, Any] = {} if global_columns else {"chunk": chunk}
        self.msa_row_attention = MsaRowAttention(fields, heads=heads, chunk=chunk)
        self.msa_column_attention = columns(fields, heads=heads, **chunked)
        self.msa_transition = MsaTransition(fields)
        self.outer_product_mean = MsaOuterProductMean(fields, dim=pair, hidden=hidden, chunk=chunk)
        self.triangles = nn.ModuleList(
            [
                TriangleMultiplication(fields, edges="outgoing"),
                TriangleMultiplication(fields, edges="incoming"),
                TriangleAttention(fields, heads=pair_heads, node="starting"),
                TriangleAttention(fields, heads=pair_heads, node="ending"),
            ]
        )
        self.pair_transition = nn.Sequential(
            nn.LayerNorm(pair), nn.Linear(pair, 4 * pair), nn.ReLU(), nn.Linear(4 * pair, pair)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, f: Mapping[str, Any], m: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """Update ``m (N, S, C)`` and ``z (P, D)``; ``f`` has ``msa_mask`` and ``proteins``."""
        f = dict(f)
        m = m + self.dropout(self.msa_row_attention(f | {"msa": m, "pair": z})["msa"])  # line 2
        m = m + self.msa_column_attention(f | {"msa": m})["msa"]  # line 3
        m = m + self.msa_transition(f | {"msa": m})["msa"]  # line 4
        z = z + self.outer_product_mean(f | {"msa": m})["pair"]  # line 5
        for triangle in self.triangles:  # lines 6 to 9
            z = z + self.dropout(triangle(f | {"pair": z})["pair"])
        return m, z + self.pair_transition(z)  # line 10


class Evoformer(GraphLayer):
    """Evoformer: blocks on alignment features m and pair features z, repeated on their own result (recycling).

    ``m_1i ← m_1i + norm(m'_1i)`` and ``z ← z + norm(z')`` with m' and z' of the pass before; then each block updates m
    by attention in rows (biased by z), in columns, and a transition, and z by outer products of m, triangles and a
    transition.

    Parameters
    ----------
    blocks : int
        Number of blocks.
    heads, pair_heads : int
        Attention heads of sequences, and of triangles.
    hidden : int
        Width of the factors of outer products.
    dropout : float
        Dropout probability of the updates by row attention and triangles.
    recycles : int
        Further passes; only the last one has gradients.
    global_columns : bool
        True: the extra-MSA stack, with one query per column, for many sequences.
    chunk : int, optional
        Sequences, or residues, of attention and outer products at a time; None: as many as fit in 128 MB.

    Notes
    -----
    Reads: ``msa`` ``(N, S, C)``; ``msa_mask`` ``(N, S)``; ``pair`` ``(P, D)`` scalars; ``proteins``.
    Writes: ``msa`` ``(N, S, C)``; ``pair`` ``(P, D)``; ``h`` ``(N, C)``: the first sequence, ``m_1i``.

    Deviations from the paper: dropout is not shared along rows or columns, last linear maps are not initialized to 0,
    and no distances are recycled.

    References
    ----------
    Jumper et al. 2021, doi:10.1038/s41586-021-03819-2, supplement, algorithms 6 to 15, 18, 19 and 32.
    """

    reads: ClassVar[tuple[str, ...]] = ("msa", "msa_mask", "pair", "proteins")
    writes: ClassVar[tuple[str, ...]] = ("msa", "pair", "h")
    conformity: ClassVar[Conformity] = Conformity(
        options={"recycles": 0},
        inputs=dict(MsaRowAttention.conformity.inputs),
        expected_failures=LOOPS_OVER_PROTEINS,
    )

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        blocks: Annotated[int, Ge(1)] = 1,
        heads: int = 4,
        pair_heads: int = 4,
        hidden: int = 16,
        dropout: float = 0.0,
        recycles: Annotated[int, Ge(0)] = 0,
        global_columns: bool = False,
        chunk: Annotated[int, Ge(1)] | None = None,
    ) -> None:
        super().__init__(fields)
        width, pair, self.recycles = msa_width(self), self.scalar_width("pair"), recycles
        self.blocks = nn.ModuleList(
            EvoformerBlock(
                self,
                heads=heads,
                pair_heads=pair_heads,
                hidden=hidden,
                dropout=dropout,
                chunk=chunk,
                global_columns=global_columns,
            )
            for _ in range(blocks)
        )
        if recycles:
            self.recycled_first, self.recycled_pair = nn.LayerNorm(width), nn.LayerNorm(pair)
        self.declare(msa=self.fields["msa"].as_("msa"), pair=FieldSpec("pair", "pair", f"{pair}x0e"), h=f"{width}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``msa (N, S, C)``, ``pair (P, D)`` and ``h (N, C)``."""
        m, z = f["msa"], f["pair"]
        for _ in range(self.recycles):
            with torch.no_grad():
                m, z = self._pass(f, m, z)
            m, z = self._recycled(f, m, z)
        m, z = self._pass(f, m, z)
        return {"msa": m, "pair": z, "h": m[:, 0]}

    def _pass(self, f: Mapping[str, Any], m: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        for block in self.blocks:
            m, z = block(f, m, z)
        return m, z

    def _recycled(self, f: Mapping[str, Any], m: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return the inputs with those of a pass added to the first sequence and the pairs."""
        first = f["msa"][:, :1] + self.recycled_first(m[:, :1])
        return torch.cat([first, f["msa"][:, 1:]], 1), f["pair"] + self.recycled_pair(z)
