"""Concatenation of neighbors along the chain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import torch
from annotated_types import Ge
from torch import Tensor

from protgraph.data.graph import FieldSpec
from protgraph.nn import GraphLayer
from protgraph.ops import Proteins

__all__ = ["Window"]
ENTRY_POINTS = {"protgraph.layers": {"window": "Window"}}


class Window(GraphLayer):
    """Sliding window along the chain: ``h'_i = [h(s_i - w), …, h(s_i), …, h(s_i + w)]``.

    h(s) is the residue at position s.

    Positions without a residue of the same chain, past the ends and in unresolved gaps, are 0. The order of nodes has
    no effect.

    Parameters
    ----------
    size : int
        w, number of positions to each side.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars; ``seq_pos`` ``(N,)`` int64; ``chain`` ``(N,)`` int64; ``proteins``.
    Writes: ``h`` ``(N, (2 w + 1) C)``, ``0e``.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "seq_pos", "chain", "proteins")
    writes: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(self, fields: Mapping[str, FieldSpec], *, size: Annotated[int, Ge(0)] = 7) -> None:
        super().__init__(fields)
        self.size = size
        self.declare(h=f"{(2 * size + 1) * self.scalar_width('h')}x0e")

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Concatenate the rows around each residue in its chain, ``h (N, (2w + 1) C)``; 0 beyond the ends."""
        h = f["h"]
        rows, exists = _sequence_window(f["seq_pos"], f["chain"], f["proteins"], self.size)  # (N, 2w + 1)
        window = h.index_select(0, rows.flatten()).view(*rows.shape, h.size(1)) * exists.unsqueeze(-1)
        return {"h": window.flatten(1)}


def _sequence_window(seq_pos: Tensor, chain: Tensor, proteins: Proteins, size: int) -> tuple[Tensor, Tensor]:
    """Find the nodes at positions -size … size from each node along its chain.

    Parameters
    ----------
    seq_pos, chain : Tensor
        ``(N,)`` int64.
    proteins : Proteins
    size : int
        Number of positions to each side.

    Returns
    -------
    tuple of Tensor
        ``(N, 2 size + 1)`` int64 nodes and ``(N, 2 size + 1)`` bool, whether there is one (otherwise the node is
        arbitrary).
    """
    offsets = torch.arange(-size, size + 1, device=seq_pos.device)
    if seq_pos.numel() == 0:
        none = seq_pos.new_zeros(0, offsets.numel())
        return none, none.bool()
    # One number for (protein, chain, position), with room between chains for a window past each end.
    stride = seq_pos.max() + 1 + size
    key = (proteins.batch * (chain.max() + 1) + chain) * stride + seq_pos  # (N,)
    ordered, order = key.sort()
    target = key.unsqueeze(1) + offsets  # (N, 2w + 1)
    place = torch.searchsorted(ordered, target).clamp(max=key.numel() - 1)
    return order[place], ordered[place] == target
