"""Padded layout of a ragged batch: proteins of similar length in dense blocks, e.g. for attention within proteins.

Layouts are computed on the host from the sizes, without synchronization with the device.

Not torch.nested: its jagged layout has one ragged dimension, and pair tensors have two (torch 2.13, 2026-11-22).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

__all__ = ["NodePartition", "PaddedBlock", "PaddedLayout", "PaddedSide", "SingleBlockLayout"]


# Lengths in a padded block differ by at most this factor (or 8 rows): the padded pairs are at most 1.25² times the
# pairs, except for short proteins.
_MAX_RATIO, _MIN_DIFFERENCE = 1.25, 8


@dataclass(frozen=True, eq=False)
class PaddedSide:
    """Rows of b proteins as ``(b, L, …)``: a view if they are contiguous and of equal length, else a padded copy.

    Parameters
    ----------
    num_proteins, length : int
        b and L.
    start : int
        First row of a view.
    rows, mask : Tensor, optional
        For a copy: ``(b, L)`` int64 row numbers, and ``(b, L)`` bool, False at padding.
    """

    num_proteins: int
    length: int
    start: int = 0
    rows: Tensor | None = None
    mask: Tensor | None = None

    def take(self, x: Tensor) -> Tensor:
        """Return the rows of ``(N, …)`` as ``(b, L, …)``; padding has arbitrary values."""
        if self.rows is None:
            part = x.narrow(0, self.start, self.num_proteins * self.length)
        else:
            part = x.index_select(0, self.rows.flatten())
        return part.unflatten(0, (self.num_proteins, self.length))


@dataclass(frozen=True, eq=False)
class PaddedBlock:
    """Proteins of similar length: their rows, their columns, and the pairs of both.

    Parameters
    ----------
    rows, columns : PaddedSide
        The same object for pairs within proteins.
    start : int
        First pair of a view.
    first, width : Tensor, optional
        For a copy: ``(b,)`` int64, first pair and number of columns of each protein.
    """

    rows: PaddedSide
    columns: PaddedSide
    start: int = 0
    first: Tensor | None = None
    width: Tensor | None = None

    def pairs(self, x: Tensor, rows: slice) -> Tensor:
        """Return pair values ``(H, P)`` as ``(b, H, l, M)`` for a slice of l rows; padding has arbitrary values."""
        num, length, columns = self.rows.num_proteins, self.rows.length, self.columns.length
        if self.first is None or self.width is None:
            part = x.narrow(1, self.start, num * length * columns).view(x.size(0), num, length, columns)
            return part[:, :, rows].transpose(0, 1)
        i = torch.arange(length, device=x.device)[rows]
        place = i[:, None] * self.width[:, None, None] + torch.arange(columns, device=x.device)
        place = (self.first[:, None, None] + place).clamp_(max=x.size(1) - 1)  # (b, l, M)
        return x.index_select(1, place.flatten()).view(x.size(0), *place.shape).transpose(0, 1)


class PaddedLayout:
    """Blocks of a batch of proteins, and the inverse mapping to ragged rows.

    Parameters
    ----------
    rows, columns : sequence of int
        Nodes per protein; two different partitions for cross-attention, otherwise the same sequence twice.
    device : torch.device
        Device of the index tensors.
    padded : bool
        True: pad proteins of similar length to a common length, which needs few kernel launches (best on a GPU). False:
        only consecutive proteins of equal length share a block, and blocks are views.

    Attributes
    ----------
    blocks : tuple of PaddedBlock
        Non-empty blocks; proteins without rows or columns are in no block.
    """

    def __init__(self, rows: Sequence[int], columns: Sequence[int], device: torch.device, *, padded: bool) -> None:
        self._rows, self._columns = np.asarray(rows, np.int64), np.asarray(columns, np.int64)
        self._device, self._same = device, rows is columns
        size = np.stack([self._rows, self._columns])
        self._start = np.cumsum(size, 1) - size
        self._pairs = np.cumsum(size.prod(0)) - size.prod(0)
        self._place: Tensor | None = None
        members = [m for m in _groups(size, padded) if size[:, m].prod(0).max(initial=0)]
        self.blocks = tuple(map(self._block, members))
        placed = [protein for m in members for protein in m.tolist()]
        self._is_complete = len(placed) == len(self._rows)
        if placed != list(range(len(self._rows))) or any(b.rows.rows is not None for b in self.blocks):
            self._place = self._places(members)

    def _block(self, members: np.ndarray) -> PaddedBlock:
        first, both = int(members[0]), (self._rows, self._columns)
        if (np.diff(members) == 1).all() and all((size[members] == size[first]).all() for size in both):
            starts = zip(both, self._start, strict=True)
            rows, columns = (PaddedSide(len(members), int(size[first]), int(start[first])) for size, start in starts)
            return PaddedBlock(rows, columns, start=int(self._pairs[first]))
        rows = self._side(members, self._rows, self._start[0])
        columns = rows if self._same else self._side(members, self._columns, self._start[1])
        return PaddedBlock(rows, columns, 0, self._send(self._pairs[members]), self._send(self._columns[members]))

    def _side(self, members: np.ndarray, sizes: np.ndarray, starts: np.ndarray) -> PaddedSide:
        length = int(sizes[members].max())
        place = np.arange(length)
        mask = place < sizes[members, None]
        rows = np.where(mask, starts[members, None] + place, 0)
        return PaddedSide(len(members), length, rows=self._send(rows), mask=self._send(mask))

    def _places(self, members: list[np.ndarray]) -> Tensor:
        """Return the position of each row in the concatenated blocks; rows in no block get the position after them."""
        sizes, offset = self._rows, 0
        total = sum(len(m) * int(sizes[m].max()) for m in members)
        index = np.full(int(sizes.sum()), total)
        for m in members:
            length = int(sizes[m].max())
            for number, protein in enumerate(m):
                start = self._start[0, protein]
                index[start : start + sizes[protein]] = offset + number * length + np.arange(sizes[protein])
            offset += len(m) * length
        return self._send(index)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Join one tensor ``(b, L, …)`` per block to ``(N, …)``; rows in no block are 0."""
        flat = [part.flatten(0, 1) for part in parts]
        if not self._is_complete:
            flat.append(flat[0].new_zeros(1, *flat[0].shape[1:]))
        joined = flat[0] if len(flat) == 1 else torch.cat(flat)
        return joined if self._place is None else joined.index_select(0, self._place)

    def _send(self, values: np.ndarray) -> Tensor:
        tensor = torch.from_numpy(values)
        return (tensor.pin_memory() if self._device.type == "cuda" else tensor).to(self._device, non_blocking=True)


def _groups(size: np.ndarray, padded: bool) -> list[np.ndarray]:
    """Group proteins into blocks; ``size`` is ``(2, B)``, rows and columns of each protein."""
    count = size.shape[1]
    if count == 0:
        return []
    if (size == size[:, :1]).all():
        return [np.arange(count)]
    order = np.lexsort(size) if padded else np.arange(count)
    groups, first = [], 0
    for k in range(1, count + 1):
        if k < count and _fit(size[:, order[first : k + 1]], padded):
            continue
        groups.append(order[first:k])
        first = k
    return groups


def _fit(size: np.ndarray, padded: bool) -> bool:
    low, high = size.min(1), size.max(1)
    return bool((high <= np.where(padded, np.maximum(_MAX_RATIO * low, low + _MIN_DIFFERENCE), low)).all())


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
