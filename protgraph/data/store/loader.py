"""Batching: proteins packed into batches by residues, split over processes, and collated here or in workers.

Not PyG's DynamicBatchSampler: it has no order by seed and epoch, no buckets of similar length, and cannot be resumed
(PyG 2.8.1, 2026-11-22).
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import torch
from torch.utils.data import DataLoader, Sampler
from torch_geometric.data import Batch

from protgraph.errors import OptionError

__all__ = ["ProteinBatches", "RankBatches", "StoreLoader", "pack", "pack_starts"]

_WINDOW = 32  # batches whose proteins are sorted by length together

T = TypeVar("T")


def pack(
    items: Iterable[T], size: Callable[[T], int], *, max_size: int | None = None, max_items: int | None = None
) -> Iterator[list[T]]:
    """Pack items into batches in order, within a budget of residues or of items.

    Parameters
    ----------
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
        item_size = size(item)
        too_large = max_size is not None and total + item_size > max_size
        if batch and (too_large or (max_items is not None and len(batch) >= max_items)):
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += item_size
    if batch:
        yield batch


def pack_starts(sizes: np.ndarray, *, max_size: int | None = None, max_items: int | None = None) -> np.ndarray:
    """Return the first item of each batch of :func:`pack`, and the number of items, without a loop over items.

    ``sizes``: ``(P,)`` integers. Returns ``(B + 1,)`` int64 for B batches.

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
        sizes: Sequence[int] | np.ndarray,
        *,
        indices: Sequence[int] | None = None,
        batch_size: int | None = None,
        max_nodes: int | None = None,
        shuffle: bool = False,
        bucket: bool = False,
        seed: int = 0,
        epoch: int = 0,
    ) -> None:
        limits = [limit for limit in (batch_size, max_nodes) if limit is not None]
        if len(limits) != 1:
            raise OptionError(f"ProteinBatches: {batch_size=}, {max_nodes=}. Give exactly one of them.")
        if limits[0] < 1:
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


class RankBatches(Sampler[list[int]]):
    """Protein numbers of the batches of one process, from a position that can be set.

    ``batches``: protein numbers of each batch of all processes together. ``rank``, ``world_size``: this process and the
    number of processes. ``deal``: False splits each batch: process r of W receives its proteins r, r + W, r + 2 W and
    so on, so the number of processes does not change an optimizer step. True deals whole batches: process r receives
    the batches r, r + W and so on. ``start``: first batch of the next pass; reset to 0 by it.

    Notes
    -----
    All processes run the same number of steps: one without a share of a step receives a protein as padding.
    """

    def __init__(
        self,
        batches: Sequence[Sequence[int]] | ProteinBatches,
        rank: int = 0,
        world_size: int = 1,
        *,
        deal: bool = False,
    ) -> None:
        self.batches, self.rank, self.world_size, self.deal = batches, rank, world_size, deal
        self.start = 0

    def share(self, step: int) -> tuple[list[int], bool]:
        """Return the protein numbers of this process at a step, and True if they are padding."""
        if self.deal:
            number = step * self.world_size + self.rank
            is_padding = number >= len(self.batches)
            return list(self.batches[0][:1] if is_padding else self.batches[number]), is_padding
        members = self.batches[step]
        own = members[self.rank :: self.world_size]
        return list(own or members[:1]), not own

    def __len__(self) -> int:
        return -(-len(self.batches) // self.world_size) if self.deal else len(self.batches)

    def __iter__(self) -> Iterator[list[int]]:
        start, self.start = self.start, 0
        return (self.share(step)[0] for step in range(start, len(self)))


class StoreLoader:
    """Collated batches of a :class:`RankBatches`, in this process or in worker processes.

    ``collate``: from the protein numbers of a batch to the batch. ``workers``: worker processes, which are kept between
    passes; 0 collates in this process.
    """

    def __init__(self, collate: Callable[[Sequence[int]], Batch], sampler: RankBatches, *, workers: int = 0) -> None:
        self.rank_batches = sampler
        self._loader: DataLoader[int] = DataLoader(
            range(sys.maxsize),  # type: ignore[arg-type]  # any sequence; the data are the protein numbers themselves
            batch_sampler=sampler,
            num_workers=workers,
            collate_fn=collate,
            persistent_workers=workers > 0,
            generator=torch.Generator(),  # the default generator of torch belongs to the model
        )

    def __len__(self) -> int:
        return len(self.rank_batches)

    def __iter__(self) -> Iterator[Batch]:
        first, is_shared = self.rank_batches.start, self.rank_batches.world_size > 1
        for number, batch in enumerate(self._loader, first):
            if is_shared and self.rank_batches.share(number)[1]:
                main = batch[0] if isinstance(batch, tuple) else batch
                main.is_padding = True
            yield batch

    def state_dict(self) -> dict[str, Any]:
        """Return nothing: ``FitData`` keeps the position, which Lightning restores before the loader exists."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Accept the empty state; see :meth:`state_dict`."""
