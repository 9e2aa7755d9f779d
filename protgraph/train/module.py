"""One training run as a Lightning module: steps, the schedule, validation once an epoch, and the best weights."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import lightning.pytorch as pl
import torch
from torch import Tensor
from torch_geometric.data import Batch

from protgraph.data.store.graph_store import GraphStore
from protgraph.model.build import ProteinModel
from protgraph.task.losses import known_labels
from protgraph.task.metrics import best_threshold, compute_metrics
from protgraph.task.task import Task
from protgraph.train.config import FitConfig
from protgraph.train.coordinate_noise import add_noise
from protgraph.train.evaluate import Batches, predict_split

__all__ = ["Best", "FitModule"]

WARM_UP = 0.05  # of all steps


@dataclass(frozen=True)
class Best:
    """The epoch that validation chose.

    Parameters
    ----------
    epoch : int
        From 1.
    metrics : mapping of str to float
        On validation.
    threshold : Tensor, optional
        ``(C,)`` log-odds at which Matthews' correlation on validation was largest; for yes/no labels.
    weights : mapping of str to Tensor
        A copy of the model's state.
    """

    epoch: int
    metrics: Mapping[str, float]
    threshold: Tensor | None
    weights: Mapping[str, Tensor]


class FitModule(pl.LightningModule):
    """Trains one model on one task.

    Parameters
    ----------
    model : ProteinModel
    task : Task
    config : FitConfig
    batches : Batches
        Of the training split.
    validation : GraphStore
        What chooses among epochs.
    loss : callable
        ``(logits, y)`` to a scalar.
    on_epoch : callable, optional
        Given each epoch's row of the history.

    Attributes
    ----------
    history : list of dict
        One row an epoch: ``epoch`` from 1, ``train_loss`` (mean over known labels, as the weights went along),
        ``val_loss`` and the metrics on validation.
    best : Best, optional
        None until an epoch had a defined monitored metric.
    residues, seconds : int, float
        What training took, validation left out.
    """

    def __init__(
        self,
        model: ProteinModel,
        task: Task,
        config: FitConfig,
        batches: Batches,
        validation: GraphStore,
        loss: Callable[[Tensor, Tensor], Tensor],
        *,
        on_epoch: Callable[[Mapping[str, float]], None] | None = None,
    ) -> None:
        super().__init__()
        self.model, self.task, self.config = model, task, config
        self.batches, self.validation, self.loss, self.on_epoch = batches, validation, loss, on_epoch
        self.history: list[dict[str, float]] = []
        self.best: Best | None = None
        self.residues, self.seconds = 0, 0.0
        self._begun = time.perf_counter()

    def configure_optimizers(self) -> dict[str, Any]:
        c = self.config
        fused = c.precision == "float32"  # Lightning cannot clip gradients of a fused one in mixed precision
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=c.lr, weight_decay=c.weight_decay, fused=fused)
        factor = partial(learning_rate_factor, steps=c.epochs * len(self.batches), schedule=c.schedule)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    def transfer_batch_to_device(self, batch: Batch, device: torch.device, dataloader_idx: int) -> Batch:
        return batch if device.type == "cpu" else batch.to(device, non_blocking=True)

    def on_train_start(self) -> None:
        self._generator = torch.Generator(self.device).manual_seed(self.config.seed)

    def on_train_epoch_start(self) -> None:
        self._loss = torch.zeros((), device=self.device)
        self._known = torch.zeros((), device=self.device)
        self._start = time.perf_counter()

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        batch, y = self.task.inputs.apply(batch, self._generator, training=True)
        if self.config.noise:
            batch = add_noise(batch, self.config.noise, self._generator)
        loss = self.task.batch_loss(self.loss, self.model(batch)["logits"].float(), y, batch)
        count = known_labels(y).sum()
        self._loss += loss.detach() * count
        self._known += count
        self.residues += batch.num_nodes
        return loss

    def on_train_batch_end(self, outputs: Any, batch: Batch, batch_idx: int) -> None:
        limit = self.config.max_time
        if limit is not None and time.perf_counter() - self._begun > limit:
            self.trainer.should_stop = True

    def on_train_epoch_end(self) -> None:
        train_loss = float(self._loss / self._known.clamp(min=1))  # waits for the device
        self.seconds += time.perf_counter() - self._start
        said = predict_split(self.model, self.validation, self.task, loss=self.loss)
        threshold = best_threshold(said) if self.task.has_threshold else None
        metrics = compute_metrics(self.task.metrics, said.with_threshold(threshold))
        val_loss = float(self.loss(said.logits, said.y)) if said.loss is None else said.loss
        row = {"epoch": len(self.history) + 1, "train_loss": train_loss, "val_loss": val_loss, **metrics}
        self.history.append(row)
        if math.isfinite(val_loss):  # a model of NaN predicts the first class, which a metric may call good
            self._keep_best(metrics, threshold)
        stale = len(self.history) - (self.best.epoch if self.best else 0)
        if not math.isfinite(train_loss) or (self.config.patience is not None and stale >= self.config.patience):
            self.trainer.should_stop = True
        if self.trainer.progress_bar_callback is not None:
            shown = {"train_loss": train_loss, self.task.monitor: metrics[self.task.monitor]}
            self.log_dict(shown, prog_bar=True, batch_size=1)
        if self.on_epoch is not None:
            self.on_epoch(row)

    def _keep_best(self, metrics: Mapping[str, float], threshold: Tensor | None) -> None:
        """Copy the weights if the monitored metric is the best so far; NaN never is."""
        sign = 1 if self.task.mode == "max" else -1
        now = sign * metrics[self.task.monitor]
        if now > (-math.inf if self.best is None else sign * self.best.metrics[self.task.monitor]):
            weights = {name: value.detach().clone() for name, value in self.model.state_dict().items()}
            self.best = Best(len(self.history), metrics, threshold, weights)


def learning_rate_factor(step: int, *, steps: int, schedule: str) -> float:
    """Learning rate of a step over the largest one: a linear warm-up, then half a cosine or 1."""
    warm = max(1, round(WARM_UP * steps))
    if step < warm:
        return (step + 1) / warm
    if schedule == "constant":
        return 1.0
    return 0.5 * (1 + math.cos(math.pi * min(1.0, (step - warm) / max(1, steps - warm))))
