"""Data loaders of a run as a Lightning data module: batches split over processes, with a position to resume from.

The order of proteins is a function of the seed and the epoch. It does not depend on the number of devices and workers,
nor on an interruption.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any

import lightning.pytorch as pl
from torch_geometric.data import Batch

from protgraph.data.store.graph_store import GraphStore
from protgraph.data.store.loader import ProteinBatches, RankBatches, StoreLoader
from protgraph.evaluation.evaluation import collate_evaluation, evaluation_batches
from protgraph.task.task import Task
from protgraph.train.auxiliary import AuxiliaryTask
from protgraph.train.config import FitConfig

__all__ = ["FitData"]


class FitData(pl.LightningDataModule):
    """Training and validation batches of one run.

    Parameters
    ----------
    task : Task
        Defines the inputs and labels of validation.
    config : FitConfig
        Its ``batch_residues`` and ``seed``.
    workers : int
        Worker processes of each data loader.
    auxiliary : sequence of AuxiliaryTask
        Their batches follow that of the main task.
    fields : collection of str, optional
        Fields and attributes of all batches, e.g. :attr:`FitModule.batch_fields`; default: all.
    """

    def __init__(
        self,
        train: GraphStore,
        val: GraphStore,
        task: Task,
        config: FitConfig,
        *,
        workers: int = 0,
        fields: Collection[str] | None = None,
        auxiliary: Sequence[AuxiliaryTask] = (),
    ) -> None:
        super().__init__()
        self.auxiliary = tuple(auxiliary)
        self.train, self.val, self.task, self.workers, self.fields = train, val, task, workers, fields
        self.batches = ProteinBatches(train.sizes, max_nodes=config.batch_residues, shuffle=True, seed=config.seed)
        self._start = (0, 0)  # epoch and batch to resume from
        self._train_loader: StoreLoader | None = None
        self._val_loader: StoreLoader | None = None

    def setup(self, stage: str) -> None:
        """Request the loader of each epoch: batches differ between epochs, also in number."""
        assert self.trainer is not None  # Lightning sets it before
        self.trainer.reload_dataloaders_every_n_epochs = 1  # type: ignore[attr-defined]  # Lightning does not declare it

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
            collate = partial(self.train.collate, fields=self.fields) if not self.auxiliary else self._collate_all
            self._train_loader = StoreLoader(collate, sampler, workers=self.workers)
        sampler = self._train_loader.rank_batches
        sampler.batches = self.batches
        sampler.start = self._start[1] if self._start[0] == epoch else 0  # Lightning may request the loader twice
        return self._train_loader

    def _collate_all(self, members: Sequence[int]) -> tuple[Batch | None, ...]:
        """Return the batch of proteins for the main task, and those of the same proteins for the auxiliary tasks."""
        names = [self.train.names[i] for i in members]
        others = [one.collate(names) for one in self.auxiliary]
        return self.train.collate(members, fields=self.fields), *others

    def val_dataloader(self) -> StoreLoader:
        """Return the evaluation batches of this process; see :class:`RankBatches`."""
        if self._val_loader is None:
            batches = evaluation_batches(self.val, self.task)
            sampler = RankBatches(batches, self._rank, self._world_size, deal=True)
            collate = partial(collate_evaluation, self.val, task=self.task, fields=self.fields)
            self._val_loader = StoreLoader(collate, sampler, workers=self.workers)
        return self._val_loader

    def state_dict(self) -> dict[str, Any]:
        """Return the position in the order of the run: the epoch, and the number of its batches that were used."""
        assert self.trainer is not None  # Lightning calls it during training
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
