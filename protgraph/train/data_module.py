"""Data loaders of a run as a Lightning data module: batches split over processes, with a position to resume from.

Every epoch uses the same order of proteins, drawn once from the seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
    """Shares of one process in a list of global batches, from a position that can be set.

    Process r of W receives the proteins r, r + W, r + 2 W, … of every global batch. The shares of all processes make
    up the global batch, so the number of processes does not change the data of an optimizer step. A process without a
    share receives the first protein, and :meth:`is_padding` is true for it.

    Parameters
    ----------
    batches : sequence of sequence of int
        Protein numbers of each global batch.
    rank, world_size : int
        This process and the number of processes.

    Attributes
    ----------
    start : int
        Batch with which the next epoch begins. It is 0 again afterwards.
    """

    def __init__(self, batches: Sequence[Sequence[int]], *, rank: int = 0, world_size: int = 1) -> None:
        self.batches, self.rank, self.world_size = batches, rank, world_size
        self.start = 0

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[list[int]]:
        start, self.start = self.start, 0
        for members in self.batches[start:]:
            yield list(members[self.rank :: self.world_size] or members[:1])

    def is_padding(self, number: int) -> bool:
        """Return whether this process has no share in a batch."""
        return self.rank >= len(self.batches[number])


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
        self.collate, self.shares, self.workers = collate, sampler, workers
        self._loader = _workers(collate, sampler, workers) if workers else None

    def __len__(self) -> int:
        return len(self.shares)

    def __iter__(self) -> Iterator[Batch]:
        number = self.shares.start
        for batch in map(self.collate, self.shares) if self._loader is None else self._loader:
            if self.shares.is_padding(number):
                batch.is_padding = True
            number += 1
            yield batch

    def state_dict(self) -> dict[str, Any]:
        """Return nothing: :class:`FitData` keeps the position, which Lightning restores before the loader exists."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Accept the empty state; see :meth:`state_dict`."""


def _workers(collate: Callable[[Sequence[int]], Batch], sampler: RankBatches, workers: int) -> DataLoader:
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
    """A data set whose examples are their own numbers."""

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
        self.allow_zero_length_dataloader_with_multiple_devices = True  # fewer validation batches than processes
        self.batches = list(ProteinBatches(train.sizes, max_nodes=config.batch_residues, shuffle=True, seed=config.seed))
        self._start = 0

    def train_dataloader(self) -> StoreLoader:
        sampler = RankBatches(self.batches, rank=self._rank, world_size=self._world_size)
        sampler.start, self._start = self._start, 0
        return StoreLoader(self.train.collate, sampler, workers=self.workers)

    def val_dataloader(self) -> StoreLoader:
        """Return every W-th validation batch; the module joins the predictions of all W processes in order."""
        batches = evaluation_batches(self.val, self.task)[self._rank :: self._world_size]
        collate = partial(evaluation_batch, self.val, task=self.task)
        return StoreLoader(collate, RankBatches(batches), workers=self.workers)

    def state_dict(self) -> dict[str, Any]:
        """Return the number of batches that this epoch has used; 0 at its end."""
        used = self.trainer.fit_loop.epoch_loop.batch_progress.current.ready
        return {"batch": used % len(self.batches)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._start = state["batch"]

    @property
    def _rank(self) -> int:
        return self.trainer.global_rank if self.trainer is not None else 0

    @property
    def _world_size(self) -> int:
        return self.trainer.world_size if self.trainer is not None else 1
