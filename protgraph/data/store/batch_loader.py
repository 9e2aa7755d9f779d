"""Data loaders of graph stores: batches split over processes, collated here or in worker processes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import torch
from torch.utils.data import DataLoader, Sampler
from torch_geometric.data import Batch

__all__ = ["RankBatches", "StoreLoader"]


class RankBatches(Sampler[list[int]]):
    """Protein numbers of the batches of one process, from a position that can be set.

    Parameters
    ----------
    batches : sequence of sequence of int
        Protein numbers of each batch of all processes together.
    rank, world_size : int
        This process and the number of processes.
    deal : bool
        False splits each batch: process r of W receives its proteins r, r + W, r + 2 W and so on, so the number of
        processes does not change an optimizer step. True deals whole batches: process r receives the batches r, r + W
        and so on.

    Attributes
    ----------
    start : int
        First batch of the next pass; reset to 0 by it.

    Notes
    -----
    All processes run the same number of steps: one without a share of a step receives a protein as padding.
    """

    def __init__(
        self, batches: Sequence[Sequence[int]], rank: int = 0, world_size: int = 1, *, deal: bool = False
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

    Not torch.utils.data.DataLoader alone: without workers it adds a fetcher, a collation list and a draw from a random
    generator per epoch between the store and the model (torch 2.9, 2026-11-22).

    Parameters
    ----------
    collate : callable
        From the protein numbers of several batches to these batches.
    sampler : RankBatches
    workers : int
        Worker processes; 0 collates in this process.
    batches_per_call : int
        Batches that are collated in one call without workers, which takes less time per batch.
    keep : bool
        Keep the batches of the first pass without workers and return shallow copies of them in the others: each pass
        has the same.
    """

    def __init__(
        self,
        collate: Callable[[Sequence[Sequence[int]]], Sequence[Batch]],
        sampler: RankBatches,
        *,
        workers: int = 0,
        batches_per_call: int = 1,
        keep: bool = False,
    ) -> None:
        self.rank_batches = sampler
        self._collate, self._batches_per_call, self._keep = collate, batches_per_call, keep
        self._kept: list[Batch] | None = None
        self._loader = _worker_loader(partial(_collate_one, collate), sampler, workers) if workers else None

    def __len__(self) -> int:
        return len(self.rank_batches)

    def __iter__(self) -> Iterator[Batch]:
        first, is_shared = self.rank_batches.start, self.rank_batches.world_size > 1
        for number, batch in enumerate(self._batches() if self._loader is None else self._loader, first):
            if is_shared and self.rank_batches.share(number)[1]:
                batch.is_padding = True
            yield batch

    def _batches(self) -> Iterator[Batch]:
        """Collate in this process."""
        numbers = iter(self.rank_batches)
        parts = iter(lambda: list(islice(numbers, self._batches_per_call)), [])
        batches = (batch for part in parts for batch in self._collate(part))
        if not self._keep:
            return batches
        self._kept = self._kept or list(batches)
        return map(copy.copy, self._kept)

    def state_dict(self) -> dict[str, Any]:
        """Return nothing: ``FitData`` keeps the position, which Lightning restores before the loader exists."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Accept the empty state; see :meth:`state_dict`."""


def _collate_one(collate: Callable[[Sequence[Sequence[int]]], Sequence[Batch]], members: Sequence[int]) -> Batch:
    """Collate one batch in a worker process; tensors that share memory would be sent whole with each batch."""
    (batch,) = collate([members])
    return batch


def _worker_loader(collate: Callable[[Sequence[int]], Batch], sampler: RankBatches, workers: int) -> DataLoader:
    generator = torch.Generator()  # the default generator of torch belongs to the model
    return DataLoader(
        _Numbers(),
        batch_sampler=sampler,
        num_workers=workers,
        collate_fn=collate,
        persistent_workers=True,
        generator=generator,
    )


class _Numbers:
    """Dataset of protein numbers."""

    def __getitem__(self, number: int) -> int:
        return number
