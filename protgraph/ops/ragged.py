"""Padded layout of a ragged batch: proteins of similar length in dense blocks, e.g. for attention within proteins.

Layouts are computed on the host from the sizes, without synchronization with the device.
"""

# Not torch.nested: its jagged layout has one ragged dimension, and pair tensors have two (torch 2.13, 2026-11-22).

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

    ``num_proteins``, ``length``: b and L. ``start``: first row of a view. ``rows``, ``mask``: for a copy: ``(b, L)``
    int64 row numbers, and ``(b, L)`` bool, False at padding.
    """

    num_proteins: int
    length: int
    start: int = 0
    rows: Tensor | None = None
    mask: Tensor | None = None

    def take(self, x: Tensor) -> Tensor:
        """Return the rows of ``(N, …)`` as ``(b, L, …)``; padding has arbitrary values."""
        if self.rows is None:
            values = x.narrow(0, self.start, self.num_proteins * self.length)
        else:
            values = x.index_select(0, self.rows.flatten())
        return values.unflatten(0, (self.num_proteins, self.length))


@dataclass(frozen=True, eq=False)
class PaddedBlock:
    """Proteins of similar length: their rows, their columns, and the pairs of both.

    ``rows``, ``columns``: the same object for pairs within proteins. ``start``: first pair of a view. ``first``,
    ``width``: for a copy: ``(b,)`` int64, first pair and number of columns of each protein.
    """

    rows: PaddedSide
    columns: PaddedSide
    start: int = 0
    first: Tensor | None = None
    width: Tensor | None = None

    def pairs(self, x: Tensor, rows: slice) -> Tensor:
        """Return pair values ``(H, P)`` as ``(b, H, l, M)`` for a slice of l rows; padding has arbitrary values."""
        num = self.rows.num_proteins
        length = self.rows.length
        columns = self.columns.length
        if self.first is None or self.width is None:  # a view
            pairs = x.narrow(1, self.start, num * length * columns)
            pairs = pairs.view(x.size(0), num, length, columns)
            return pairs[:, :, rows].transpose(0, 1)
        i = torch.arange(length, device=x.device)[rows]
        j = torch.arange(columns, device=x.device)
        pair = i[:, None] * self.width[:, None, None] + j  # in its protein
        pair = self.first[:, None, None] + pair
        pair = pair.clamp_(max=x.size(1) - 1)  # (b, l, M)
        values = x.index_select(1, pair.flatten()).view(x.size(0), *pair.shape)
        return values.transpose(0, 1)


class PaddedLayout:
    """Blocks of a batch of proteins, and the inverse mapping to ragged rows.

    ``rows``, ``columns``: nodes per protein; two different partitions for cross-attention, otherwise the same sequence
    twice. ``device``: device of the index tensors. ``padded``: True: pad proteins of similar length to a common length,
    which needs few kernel launches (best on a GPU). False: only consecutive proteins of equal length share a block, and
    blocks are views. ``blocks``: non-empty blocks; proteins without rows or columns are in no block.
    """

    def __init__(self, rows: Sequence[int], columns: Sequence[int], device: torch.device, *, padded: bool) -> None:
        self._rows = np.asarray(rows, np.int64)
        self._columns = np.asarray(columns, np.int64)
        self._device = device
        self._has_equal_sides = rows is columns
        size = np.stack([self._rows, self._columns])
        num_pairs = size.prod(0)
        self._start = np.cumsum(size, 1) - size  # (2, B) first row and column of each protein
        self._first_pair = np.cumsum(num_pairs) - num_pairs

        # groups of proteins that have pairs, one block each
        groups = [group for group in _groups(size, padded) if num_pairs[group].any()]
        self.blocks = tuple(map(self._block, groups))

        # rows of views in the order of the proteins are already where they belong
        proteins = np.concatenate(groups).tolist() if groups else []
        self._is_complete = len(proteins) == len(self._rows)
        is_in_order = proteins == list(range(len(self._rows)))
        has_copies = any(block.rows.rows is not None for block in self.blocks)
        self._position: Tensor | None = None
        if has_copies or not is_in_order:
            self._position = self._positions(groups)

    def _block(self, members: np.ndarray) -> PaddedBlock:
        first = int(members[0])
        is_consecutive = (np.diff(members) == 1).all()
        equal_rows = (self._rows[members] == self._rows[first]).all()
        equal_columns = (self._columns[members] == self._columns[first]).all()
        if is_consecutive and equal_rows and equal_columns:
            rows = PaddedSide(len(members), int(self._rows[first]), int(self._start[0, first]))
            columns = PaddedSide(len(members), int(self._columns[first]), int(self._start[1, first]))
            return PaddedBlock(rows, columns, start=int(self._first_pair[first]))

        rows = self._side(members, self._rows, self._start[0])
        columns = rows
        if not self._has_equal_sides:
            columns = self._side(members, self._columns, self._start[1])
        first_pair = self._send(self._first_pair[members])
        width = self._send(self._columns[members])
        return PaddedBlock(rows, columns, first=first_pair, width=width)

    def _side(self, members: np.ndarray, sizes: np.ndarray, starts: np.ndarray) -> PaddedSide:
        length = int(sizes[members].max())
        number = np.arange(length)  # in the protein
        mask = number < sizes[members, None]
        rows = np.where(mask, starts[members, None] + number, 0)
        return PaddedSide(len(members), length, rows=self._send(rows), mask=self._send(mask))

    def _positions(self, groups: list[np.ndarray]) -> Tensor:
        """Return the position of each row in the concatenated blocks; rows in no block get the position after them."""
        position = np.full(int(self._rows.sum()), -1)
        offset = 0
        for group in groups:
            length = int(self._rows[group].max())
            for protein in group:
                size = self._rows[protein]
                start = self._start[0, protein]
                position[start : start + size] = offset + np.arange(size)
                offset += length
        position[position < 0] = offset
        return self._send(position)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Join one tensor ``(b, L, …)`` per block to ``(N, …)``; rows in no block are 0."""
        flat = [part.flatten(0, 1) for part in parts]
        if not self._is_complete:
            flat.append(flat[0].new_zeros(1, *flat[0].shape[1:]))
        joined = flat[0] if len(flat) == 1 else torch.cat(flat)
        if self._position is None:
            return joined
        return joined.index_select(0, self._position)

    def _send(self, values: np.ndarray) -> Tensor:
        tensor = torch.from_numpy(values)
        if self._device.type == "cuda":
            tensor = tensor.pin_memory()
        return tensor.to(self._device, non_blocking=True)


def _groups(size: np.ndarray, padded: bool) -> list[np.ndarray]:
    """Group proteins into blocks; ``size`` is ``(2, B)``, rows and columns of each protein."""
    count = size.shape[1]
    if count == 0:
        return []
    if (size == size[:, :1]).all():
        return [np.arange(count)]
    order = np.lexsort(size) if padded else np.arange(count)
    groups = []
    first = 0
    for k in range(1, count + 1):
        with_next = order[first : k + 1]
        is_last = k == count
        if is_last or not _fit(size[:, with_next], padded):
            groups.append(order[first:k])
            first = k
    return groups


def _fit(size: np.ndarray, padded: bool) -> bool:
    """Return True if proteins ``(2, B)`` can share a block."""
    low = size.min(1)
    high = size.max(1)
    limit = low
    if padded:
        limit = np.maximum(_MAX_RATIO * low, low + _MIN_DIFFERENCE)
    return bool((high <= limit).all())


class NodePartition(Protocol):
    """Attributes of :class:`protgraph.ops.Proteins` that the layout uses.

    ``batch``: ``(N,)`` int64, number of the protein of each node. ``longest``: nodes of the largest protein, L.
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

    ``rows``, ``columns``: as many proteins each; different ones for cross-attention. ``blocks``: one block.
    """

    def __init__(self, rows: NodePartition, columns: NodePartition) -> None:
        row_side = _side(rows)
        column_side = row_side if columns is rows else _side(columns)
        width = columns.count
        num_pairs = rows.count * width
        first_pair = num_pairs.cumsum(0) - num_pairs
        self.blocks = (PaddedBlock(row_side, column_side, first=first_pair, width=width),)
        self._rows = rows

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Join one tensor ``(B, L, …)`` to ``(N, …)``."""
        return self._rows.unpad(parts[0])


def _side(proteins: NodePartition) -> PaddedSide:
    number = torch.arange(proteins.longest, device=proteins.batch.device)  # in the protein
    mask = number < proteins.count[:, None]  # (B, L)
    rows = torch.where(mask, proteins.ptr[:-1, None] + number, 0)
    return PaddedSide(len(proteins), proteins.longest, rows=rows, mask=mask)
