"""Batching: proteins packed into batches by residues.

Not PyG's DynamicBatchSampler: it has no order by seed and epoch, no buckets of similar length, and cannot be resumed
(PyG 2.8.1, 2026-11-22).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np
from torch.utils.data import Sampler

from protgraph.errors import OptionError

__all__ = ["ProteinBatches", "pack", "pack_starts"]

_WINDOW = 32  # batches whose proteins are sorted by length together

T = TypeVar("T")


def pack(
    items: Iterable[T], size: Callable[[T], int], *, max_size: int | None = None, max_items: int | None = None
) -> Iterator[list[T]]:
    """Pack items into batches in order, within a budget of residues or of items.

    Parameters
    ----------
    items : iterable
    size : callable
        Size of an item, e.g. its number of residues.
    max_size : int, optional
        Largest sum of sizes of a batch; a larger item is a batch of its own.
    max_items : int, optional
        Largest number of items of a batch.

    Examples
    --------
    >>> list(pack([3, 4, 9, 1, 2], int, max_size=7))
    [[3, 4], [9], [1, 2]]
    """
    batch: list[T] = []
    total = 0
    for item in items:
        own = size(item)
        too_large = max_size is not None and total + own > max_size
        if batch and (too_large or (max_items is not None and len(batch) >= max_items)):
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += own
    if batch:
        yield batch


def pack_starts(sizes: np.ndarray, *, max_size: int | None = None, max_items: int | None = None) -> np.ndarray:
    """Return the first item of each batch of :func:`pack`, and the number of items, without a loop over items.

    Parameters
    ----------
    sizes : ndarray
        ``(P,)`` integers.
    max_size, max_items : int, optional
        See :func:`pack`.

    Returns
    -------
    ndarray
        ``(B + 1,)`` int64 for B batches.

    Examples
    --------
    >>> pack_starts(np.array([3, 4, 9, 1, 2]), max_size=7)
    array([0, 2, 3, 5])
    """
    ends, starts, count = np.cumsum(sizes, dtype=np.int64), [0], len(sizes)
    used = 0
    while starts[-1] < count:
        first = starts[-1]
        stop = count if max_size is None else int(ends.searchsorted(used + max_size, side="right"))
        stop = max(stop, first + 1)
        stop = stop if max_items is None else min(stop, first + max_items)
        used = int(ends[stop - 1])
        starts.append(stop)
    return np.array(starts, dtype=np.int64)


class ProteinBatches(Sampler[list[int]]):
    """Batches of proteins in an order that depends on the seed and the epoch only; batch k is ``batches[k]``.

    Parameters
    ----------
    sizes : sequence of int
        Number of nodes of every protein of the source.
    indices : sequence of int, optional
        Proteins to use; all by default.
    batch_size : int, optional
        Proteins per batch.
    max_nodes : int, optional
        Largest number of nodes per batch, instead of ``batch_size``. A larger protein is a batch of its own.
    shuffle : bool
        Random order, by seed and epoch.
    bucket : bool
        Batch proteins of similar length (less padding); the order of batches is random if ``shuffle``.
    seed, epoch : int
        Seed and epoch of the order.

    Examples
    --------
    >>> batches = ProteinBatches([5, 5, 5, 5], batch_size=2, shuffle=True)
    >>> list(batches), list(batches.at_epoch(1))
    ([[2, 0], [1, 3]], [[3, 0], [2, 1]])
    """

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        indices: Sequence[int] | None = None,
        batch_size: int | None = None,
        max_nodes: int | None = None,
        shuffle: bool = False,
        bucket: bool = False,
        seed: int = 0,
        epoch: int = 0,
    ) -> None:
        if (batch_size is None) == (max_nodes is None):
            raise OptionError(f"ProteinBatches: {batch_size=}, {max_nodes=}. Give exactly one of them.")
        if (max_nodes if batch_size is None else batch_size) < 1:
            raise OptionError(f"ProteinBatches: {batch_size=}, {max_nodes=}. Allowed: 1 or more.")
        self.sizes = np.asarray(sizes, dtype=np.int64)
        self.indices = np.arange(len(self.sizes)) if indices is None else np.asarray(indices, dtype=np.int64)
        self.batch_size, self.max_nodes = batch_size, max_nodes
        self.shuffle, self.bucket = shuffle, bucket
        self.seed, self.epoch = seed, epoch

    def at_epoch(self, epoch: int) -> ProteinBatches:
        """Return the batches of another epoch."""
        other = copy.copy(self)
        other.__dict__.pop("_order_and_starts", None)
        other.epoch = epoch
        return other

    def __iter__(self) -> Iterator[list[int]]:
        return (self[k] for k in range(len(self)))

    def __len__(self) -> int:
        return len(self._order_and_starts[1]) - 1

    def __getitem__(self, k: int) -> list[int]:
        order, starts = self._order_and_starts
        k = range(len(self))[k]
        return order[starts[k] : starts[k + 1]].tolist()

    @cached_property
    def _order_and_starts(self) -> tuple[np.ndarray, np.ndarray]:
        """Proteins in order, ``(P,)``, and the first of each batch, ``(M + 1,)``: 8 bytes per protein."""
        rng = np.random.default_rng([self.seed, self.epoch])
        order = rng.permutation(self.indices) if self.shuffle else self.indices
        if self.bucket and len(order):
            window = len(order) if not self.shuffle else self._window(order)
            parts = np.split(order, range(window, len(order), window))
            order = np.concatenate([part[np.argsort(self.sizes[part], kind="stable")] for part in parts])
        starts = pack_starts(self.sizes[order], max_size=self.max_nodes, max_items=self.batch_size)
        if self.bucket and self.shuffle and len(order):
            batches = np.split(order, starts[1:-1])
            shuffled = [batches[k] for k in rng.permutation(len(batches))]
            order, starts = np.concatenate(shuffled), np.cumsum([0, *map(len, shuffled)])
        return order, starts

    def _window(self, order: np.ndarray) -> int:
        per_batch = self.batch_size or max(1, round(self.max_nodes / max(self.sizes[order].mean(), 1)))
        return _WINDOW * per_batch
