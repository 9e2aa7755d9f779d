"""Training of one model as ``protgraph train`` does it, and the bare loop of the same steps."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import Callback
from lightning.pytorch.loggers import CSVLogger
from torch_geometric.data import Batch

from benchmarks.timing import device_clock
from protgraph.data.datasets.dataset import Dataset, DatasetView, Example
from protgraph.data.datasets.labels import Labels
from protgraph.evaluation.evaluation import evaluation_mode
from protgraph.labels.loading import load_dataset
from protgraph.structure.residues.residues import Residues
from protgraph.train import FitConfig, fit
from protgraph.train.data_module import FitData
from protgraph.train.run_setup import RunSetup, set_up_run

__all__ = ["EpochTimes", "RepeatedTraining", "TrainingLoops"]


@dataclass(frozen=True)
class EpochTimes:
    """Time of one epoch, seconds: CPU time, or on a GPU the time until it is done.

    Parameters
    ----------
    training, validation : float
        With the command, ``validation`` is everything after the last step: metrics, logging and checkpoints too.
    """

    training: float
    validation: float


class _EpochClock(Callback):
    """Times of a run by Lightning: start and end of training, start of each validation.

    ``before_epoch`` is called before each epoch and after the last one; its time is not counted.
    """

    on_train_batch_start = on_train_batch_end = on_before_zero_grad = None  # Lightning skips hooks that are None
    on_before_backward = on_after_backward = on_before_optimizer_step = None

    def __init__(self, before_epoch: Callable[[], None], clock: Callable[[], float]) -> None:
        self.epochs: list[EpochTimes] = []
        self._before_epoch, self._clock = before_epoch, clock

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._close()
        self._before_epoch()
        self._start = self._clock()

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._validation = self._clock()

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._close()
        self._before_epoch()

    def _close(self) -> None:
        if hasattr(self, "_start"):
            end = self._clock()
            self.epochs.append(EpochTimes(self._validation - self._start, end - self._validation))
            del self._start


class RepeatedTraining(DatasetView):
    """A dataset whose training split has each protein several times, so that epochs are longer.

    Parameters
    ----------
    base : Dataset
    copies : int
    """

    def __init__(self, base: Dataset, copies: int) -> None:
        super().__init__(base, "", (), replace(base.card, version=f"{base.version}, {copies} copies"))
        self._copies = copies

    def examples(self, task: str, split: str | None = None) -> list[Example]:
        """Return the examples of all splits or of one; copies have a number after the id."""
        return [
            replace(example, id=f"{example.id}#{copy}")
            for example in self.base.examples(task, split)
            for copy in range(self._copies if example.split == "train" else 1)
        ]

    def labels(self, task: str, example: Example) -> Labels | None:
        """Return the labels of the protein."""
        return self.base.labels(task, self._original(example))

    def read(self, example: Example) -> Residues:
        """Return the residues of the protein."""
        return self.base.read(self._original(example))

    def _original(self, example: Example) -> Example:
        return replace(example, id=example.id.rpartition("#")[0])


class TrainingLoops:
    """Two ways to train a model on a task of a dataset.

    Parameters
    ----------
    model, dataset, task : str
        Registry names.
    config : FitConfig
    copies : int
        Number of times that the training split has each protein.
    """

    def __init__(self, model: str, dataset: str, task: str, config: FitConfig, *, copies: int = 1) -> None:
        data, device = load_dataset(dataset, task=task), config.torch_device()
        data = data if copies == 1 else RepeatedTraining(data, copies)
        self._arguments, self._config = (model, data, task), config
        self._clock = device_clock(device)
        self._setup: RunSetup = set_up_run(model, data, task, config, cache=None, jobs=1)
        splits = self._setup.prepared.splits
        data = FitData(splits["train"], splits["val"], self._setup.task, config)
        self._train: list[Batch] = [splits["train"].collate(members).to(device) for members in data.batches]
        self._val: list[Batch] = [batch.to(device) for batch in data.val_dataloader()]
        self.residues = int(splits["train"].sizes.sum())
        self._module = self._setup.module().to(device)

    def command(self, before_epoch: Callable[[], None] = lambda: None) -> list[EpochTimes]:
        """Train with validation, CSV logger, checkpoints of the best epoch and of the state; return times of epochs.

        Parameters
        ----------
        before_epoch : callable
            Called before each epoch and after the last one. It is not in the times.
        """
        clock = _EpochClock(before_epoch, self._clock)
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "model.run"
            options: dict[str, Any] = {"logger": [CSVLogger(run / "csv", name=None)], "run_dir": run}
            fit(*self._arguments, config=self._config, callbacks=[clock], on_epoch=lambda row: None, **options)
        return clock.epochs

    def bare(self, *, clip: bool = True) -> EpochTimes:
        """Run forward, loss, backward pass, gradient clipping and optimizer on batches in memory; validate likewise.

        Parameters
        ----------
        clip : bool
            False leaves gradients as they are.
        """
        network, task = self._module.model.train(), self._setup.task
        optimizer = torch.optim.AdamW(network.parameters(), lr=self._config.lr, fused=True)
        generator = torch.Generator(self._config.torch_device()).manual_seed(0)
        start = self._clock()
        for batch in self._train:
            visible, y = task.inputs.apply(batch, generator, training=True)
            loss = task.batch_loss(self._module.loss, network(visible)["logits"].float(), y, visible)
            optimizer.zero_grad()
            loss.backward()
            if clip:
                torch.nn.utils.clip_grad_norm_(network.parameters(), self._config.gradient_clip)
            optimizer.step()
        middle = self._clock()
        with evaluation_mode(network):
            for batch in self._val:
                network(batch)
        return EpochTimes(middle - start, self._clock() - middle)
