"""A ragged batch as dense blocks: proteins of about one length side by side, for what has to see whole proteins.

Every layout is worked out on the host, which knows all sizes; the device is never asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

__all__ = ["PaddedBlock", "PaddedLayout", "PaddedSide"]

# Lengths in a padded block differ by less than this factor (and 8 rows): at most 1.25² of the pairs are padding, less
# for long proteins, whatever the batch.
_SPREAD, _FLOOR = 1.25, 8


@dataclass(frozen=True, eq=False)
class PaddedSide:
    """Some proteins' rows as ``(b, L, …)``: a view where they stand together and have one length, else padded copies.

    Parameters
    ----------
    num, length : int
        b and L.
    start : int
        First row, where they stand together.
    rows, real : Tensor, optional
        ``(b, L)`` int64 row of each place and bool whether it is one, where they are copied.
    """

    num: int
    length: int
    start: int = 0
    rows: Tensor | None = None
    real: Tensor | None = None

    def take(self, x: Tensor) -> Tensor:
        """``(N, …)`` to ``(b, L, …)``; padding holds the values of any row."""
        if self.rows is None:
            part = x.narrow(0, self.start, self.num * self.length)
        else:
            part = x.index_select(0, self.rows.flatten())
        return part.unflatten(0, (self.num, self.length))


@dataclass(frozen=True, eq=False)
class PaddedBlock:
    """Proteins side by side: their rows, their columns, and the pairs of both.

    Parameters
    ----------
    rows, columns : PaddedSide
        The same one for pairs of a protein's own nodes.
    start : int
        First pair, where nothing is copied.
    first, width : Tensor, optional
        ``(b,)`` int64, each protein's first pair and number of columns, where pairs are copied.
    """

    rows: PaddedSide
    columns: PaddedSide
    start: int = 0
    first: Tensor | None = None
    width: Tensor | None = None

    def pairs(self, x: Tensor, rows: slice) -> Tensor:
        """``(H, P)`` values of all pairs to ``(b, H, l, M)``, for a range of l rows; padding holds any pair's."""
        num, length, columns = self.rows.num, self.rows.length, self.columns.length
        if self.first is None or self.width is None:
            part = x.narrow(1, self.start, num * length * columns).view(x.size(0), num, length, columns)
            return part[:, :, rows].transpose(0, 1)
        i = torch.arange(length, device=x.device)[rows]
        place = i[:, None] * self.width[:, None, None] + torch.arange(columns, device=x.device)
        place = (self.first[:, None, None] + place).clamp_(max=x.size(1) - 1)  # (b, l, M)
        return x.index_select(1, place.flatten()).view(x.size(0), *place.shape).transpose(0, 1)


class PaddedLayout:
    """The blocks of a batch of proteins, and the way back.

    Parameters
    ----------
    rows, columns : sequence of int
        Nodes of each protein; two partitions for attention across, else twice the same.
    device : torch.device
    padded : bool
        Pad proteins of about one length to one (what costs least where each call has its price, on a GPU). Else, only
        neighbors of equal length share a block, and nothing is ever copied.

    Attributes
    ----------
    blocks : tuple of PaddedBlock
        None is empty; proteins without rows or columns are in none.
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
        told = [protein for m in members for protein in m.tolist()]
        self._whole = len(told) == len(self._rows)
        if told != list(range(len(self._rows))) or any(b.rows.rows is not None for b in self.blocks):
            self._place = self._places(members)

    def _block(self, members: np.ndarray) -> PaddedBlock:
        one, both = int(members[0]), (self._rows, self._columns)
        if (np.diff(members) == 1).all() and all((of[members] == of[one]).all() for of in both):
            sides = (PaddedSide(len(members), int(of[one]), int(s[one])) for of, s in zip(both, self._start, strict=True))
            return PaddedBlock(*sides, start=int(self._pairs[one]))
        rows = self._side(members, self._rows, self._start[0])
        columns = rows if self._same else self._side(members, self._columns, self._start[1])
        return PaddedBlock(rows, columns, 0, self._send(self._pairs[members]), self._send(self._columns[members]))

    def _side(self, members: np.ndarray, sizes: np.ndarray, starts: np.ndarray) -> PaddedSide:
        length = int(sizes[members].max())
        place = np.arange(length)
        real = place < sizes[members, None]
        rows = np.where(real, starts[members, None] + place, 0)
        return PaddedSide(len(members), length, rows=self._send(rows), real=self._send(real))

    def _places(self, members: list[np.ndarray]) -> Tensor:
        """Where each row is among those of all blocks, one after another; the one past them for a row of no block."""
        sizes, offset = self._rows, 0
        total = sum(len(m) * int(sizes[m].max()) for m in members)
        place = np.full(int(sizes.sum()), total)
        for m in members:
            length = int(sizes[m].max())
            for number, protein in enumerate(m):
                start = self._start[0, protein]
                place[start : start + sizes[protein]] = offset + number * length + np.arange(sizes[protein])
            offset += len(m) * length
        return self._send(place)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """One ``(b, L, …)`` a block, at least one, to ``(N, …)``; 0 where a row is in no block."""
        flat = [part.flatten(0, 1) for part in parts]
        if not self._whole:
            flat.append(flat[0].new_zeros(1, *flat[0].shape[1:]))
        whole = flat[0] if len(flat) == 1 else torch.cat(flat)
        return whole if self._place is None else whole.index_select(0, self._place)

    def _send(self, values: np.ndarray) -> Tensor:
        made = torch.from_numpy(values)
        return made.pin_memory().to(self._device, non_blocking=True) if self._device.type == "cuda" else made


def _groups(size: np.ndarray, padded: bool) -> list[np.ndarray]:
    """Numbers of the proteins of each block; ``size`` is ``(2, B)``."""
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
    return bool((high <= np.where(padded, np.maximum(_SPREAD * low, low + _FLOOR), low)).all())
