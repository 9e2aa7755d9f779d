"""Padded layout of a batch as one block, computed from tensors: the layout that ``torch.compile`` traces.

:class:`protgraph.ops.PaddedLayout` chooses blocks from the sizes on the host; traced, it would be compiled again for
every combination of sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from protgraph.ops.ragged import PaddedBlock, PaddedSide

__all__ = ["NodePartition", "SingleBlockLayout"]


class NodePartition(Protocol):
    """Attributes of :class:`protgraph.ops.Proteins` that the layout uses.

    Attributes
    ----------
    batch : Tensor
        ``(N,)`` int64, number of the protein of each node.
    longest : int
        Nodes of the largest protein, L.
    """

    batch: Tensor
    longest: int

    def __len__(self) -> int: ...

    @property
    def count(self) -> Tensor:
        """``(B,)`` int64, nodes of each protein."""

    @property
    def ptr(self) -> Tensor:
        """``(B + 1,)`` int64 row pointer over proteins."""

    def unpad(self, padded: Tensor) -> Tensor:
        """Return the rows of nodes, ``(B, L, …)`` to ``(N, …)``."""


class SingleBlockLayout:
    """All proteins of a batch in one block, padded to the longest.

    Parameters
    ----------
    rows, columns : Proteins
        As many proteins each; different ones for cross-attention.

    Attributes
    ----------
    blocks : tuple of PaddedBlock
        One block.
    """

    def __init__(self, rows: NodePartition, columns: NodePartition) -> None:
        side = _side(rows)
        width = columns.count
        size = rows.count * width
        other = side if columns is rows else _side(columns)
        self.blocks = (PaddedBlock(side, other, 0, size.cumsum(0) - size, width),)
        self._rows = rows

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Join one tensor ``(B, L, …)`` to ``(N, …)``."""
        return self._rows.unpad(parts[0])


def _side(proteins: NodePartition) -> PaddedSide:
    place = torch.arange(proteins.longest, device=proteins.batch.device)
    mask = place < proteins.count[:, None]  # (B, L)
    rows = torch.where(mask, proteins.ptr[:-1, None] + place, 0)
    return PaddedSide(len(proteins), proteins.longest, rows=rows, mask=mask)
