"""Data loaders of a run as a Lightning data module: batches split over processes, with a position to resume from.

The order of proteins is a function of the seed and the epoch. It does not depend on the number of devices and workers,
nor on an interruption.
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
            if self.rank_batches.share(number)[1]:
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
        options = {"max_nodes": config.batch_residues, "shuffle": True, "seed": config.seed}
        self.batches = ProteinBatches(train.sizes, **options)
        self._start = (0, 0)  # epoch and batch to resume from
        self._train_loader: StoreLoader | None = None
        self._val_loader: StoreLoader | None = None

    def setup(self, stage: str) -> None:
        """Request the loader of each epoch: batches differ between epochs, also in number."""
        self.trainer.reload_dataloaders_every_n_epochs = 1

    def steps(self, epochs: int) -> int:
        """Return the number of batches of the first epochs."""
        return sum(len(self.batches.at_epoch(epoch)) for epoch in range(epochs))

    def train_dataloader(self) -> StoreLoader:
        """Return the shares of this process in the batches of the present epoch; see :class:`RankBatches`.

        Worker processes are kept from epoch to epoch.
        """
        epoch = self.trainer.current_epoch if self.trainer is not None else 0
        self.batches = self.batches if self.batches.epoch == epoch else self.batches.at_epoch(epoch)
        if self._train_loader is None:
            sampler = RankBatches(self.batches, self._rank, self._world_size)
            self._train_loader = StoreLoader(self.train.collate, sampler, workers=self.workers)
        sampler = self._train_loader.rank_batches
        sampler.batches = self.batches
        sampler.start = self._start[1] if self._start[0] == epoch else 0  # Lightning may request the loader twice
        return self._train_loader

    def val_dataloader(self) -> StoreLoader:
        """Return the evaluation batches of this process; see :class:`RankBatches`."""
        if self._val_loader is None:
            batches = evaluation_batches(self.val, self.task)
            sampler = RankBatches(batches, self._rank, self._world_size, deal=True)
            collate = partial(evaluation_batch, self.val, task=self.task)
            self._val_loader = StoreLoader(collate, sampler, workers=self.workers)
        return self._val_loader

    def state_dict(self) -> dict[str, Any]:
        """Return the position in the order of the run: the epoch, and the number of its batches that were used."""
        epoch, used = self.batches.epoch, self.trainer.fit_loop.epoch_loop.batch_progress.current.ready
        return {"epoch": epoch, "batch": used} if used < len(self.batches) else {"epoch": epoch + 1, "batch": 0}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue at the position of :meth:`state_dict`."""
        self._start = (state["epoch"], state["batch"])

    @property
    def _rank(self) -> int:
        return self.trainer.global_rank if self.trainer is not None else 0

    @property
    def _world_size(self) -> int:
        return self.trainer.world_size if self.trainer is not None else 1
