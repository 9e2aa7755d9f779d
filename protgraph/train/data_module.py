"""Data loaders of a run as a Lightning data module: batches split over processes, with a position to resume from.

Every epoch uses the same order of proteins, drawn once from the seed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any

import lightning.pytorch as pl
import torch
from torch.utils.data import DataLoader, Sampler
from torch_geometric.data import Batch

from protgraph.data.store.graph_store import GraphStore
from protgraph.data.store.loader import ProteinBatches
from protgraph.task.task import Task
from protgraph.train.config import FitConfig
from protgraph.train.evaluate import evaluation_batch, evaluation_batches

__all__ = ["FitData", "RankBatches", "StoreLoader"]


class RankBatches(Sampler[list[int]]):
    """Protein numbers of the batches of one process, from a position that can be set.

    Parameters
    ----------
    shares : sequence of list of int
        Protein numbers of each batch of this process.
    padding : collection of int
        Batches without a share of this process, so that all processes run the same number of steps; not counted.

    Attributes
    ----------
    start : int
        First batch of the next epoch; reset to 0 by it.
    """

    def __init__(self, shares: Sequence[list[int]], padding: Collection[int] = ()) -> None:
        self.shares, self.padding = shares, frozenset(padding)
        self.start = 0

    @classmethod
    def split(cls, batches: Sequence[Sequence[int]], rank: int, world_size: int) -> RankBatches:
        """Split each batch: process r of W receives its proteins r, r + W, r + 2 W and so on.

        The shares of all processes make up the batch, so the number of processes does not change an optimizer step. A
        process without a share receives the first protein as padding.
        """
        padding = [number for number, members in enumerate(batches) if rank >= len(members)]
        return cls([list(members[rank::world_size] or members[:1]) for members in batches], padding)

    @classmethod
    def deal(cls, batches: Sequence[Sequence[int]], rank: int, world_size: int) -> RankBatches:
        """Deal whole batches: process r of W receives the batches r, r + W and so on, padded to equal numbers."""
        shares = [list(members) for members in batches[rank::world_size]]
        missing = -(-len(batches) // world_size) - len(shares)
        return cls(shares + missing * [list(batches[0][:1])], range(len(shares), len(shares) + missing))

    def __len__(self) -> int:
        return len(self.shares)

    def __iter__(self) -> Iterator[list[int]]:
        start, self.start = self.start, 0
        return iter(self.shares[start:])


class StoreLoader:
    """Collated batches of a :class:`RankBatches`, in this process or in worker processes.

    Not torch.utils.data.DataLoader alone: without workers it adds a fetcher, a collation list and a draw from a random
    generator per epoch between the store and the model (torch 2.9, 2026-11-22).

    Parameters
    ----------
    collate : callable
        From protein numbers to a batch.
    sampler : RankBatches
    workers : int
        Worker processes; 0 collates in this process.
    """

    def __init__(self, collate: Callable[[Sequence[int]], Batch], sampler: RankBatches, *, workers: int = 0) -> None:
        self.collate, self.rank_batches = collate, sampler
        self._loader = _worker_loader(collate, sampler, workers) if workers else None

    def __len__(self) -> int:
        return len(self.rank_batches)

    def __iter__(self) -> Iterator[Batch]:
        first = self.rank_batches.start
        batches = map(self.collate, self.rank_batches) if self._loader is None else self._loader
        for number, batch in enumerate(batches, first):
            if number in self.rank_batches.padding:
                batch.is_padding = True
            yield batch

    def state_dict(self) -> dict[str, Any]:
        """Return nothing: :class:`FitData` keeps the position, which Lightning restores before the loader exists."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Accept the empty state; see :meth:`state_dict`."""


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


class FitData(pl.LightningDataModule):
    """Training and validation batches of one run.

    Parameters
    ----------
    train, val : GraphStore
    task : Task
        Defines the inputs and labels of validation.
    config : FitConfig
        Its ``batch_residues`` and ``seed``.
    workers : int
        Worker processes of each data loader.
    """

    def __init__(self, train: GraphStore, val: GraphStore, task: Task, config: FitConfig, *, workers: int = 0) -> None:
        super().__init__()
        self.train, self.val, self.task, self.workers = train, val, task, workers
        self.batches = list(
            ProteinBatches(train.sizes, max_nodes=config.batch_residues, shuffle=True, seed=config.seed)
        )
        self._start = 0

    def train_dataloader(self) -> StoreLoader:
        """Return the shares of this process in the training batches; see :meth:`RankBatches.split`."""
        sampler = RankBatches.split(self.batches, self._rank, self._world_size)
        sampler.start, self._start = self._start, 0
        return StoreLoader(self.train.collate, sampler, workers=self.workers)

    def val_dataloader(self) -> StoreLoader:
        """Return the evaluation batches of this process; see :meth:`RankBatches.deal`."""
        sampler = RankBatches.deal(evaluation_batches(self.val, self.task), self._rank, self._world_size)
        return StoreLoader(partial(evaluation_batch, self.val, task=self.task), sampler, workers=self.workers)

    def state_dict(self) -> dict[str, Any]:
        """Return the number of batches that this epoch has used; 0 at its end."""
        used = self.trainer.fit_loop.epoch_loop.batch_progress.current.ready
        return {"batch": used % len(self.batches)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Start the next epoch at the batch of :meth:`state_dict`."""
        self._start = state["batch"]

    @property
    def _rank(self) -> int:
        return self.trainer.global_rank if self.trainer is not None else 0

    @property
    def _world_size(self) -> int:
        return self.trainer.world_size if self.trainer is not None else 1
