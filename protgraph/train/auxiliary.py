"""Auxiliary tasks of a run: further heads on the layers of a model, whose losses are added to that of the main task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Generator, Tensor
from torch_geometric.data import Batch

from protgraph.data.store.graph_store import GraphStore
from protgraph.evaluation.evaluation import predict_split
from protgraph.failure import Failure
from protgraph.labels.preparation import Prepared
from protgraph.model.build import ProteinModel
from protgraph.task.losses import known_labels
from protgraph.task.metrics import compute_metrics
from protgraph.task.task import Task
from protgraph.train.coordinate_noise import add_noise
from protgraph.wording import count_noun

__all__ = ["AuxiliaryTask"]


@dataclass(eq=False)
class AuxiliaryTask:
    """One further task of a run; see the option ``auxiliary`` of :class:`protgraph.train.FitConfig`."""

    task: Task
    weight: float  # factor of its loss
    model: ProteinModel  # the layers of the run's model, and a head of its own
    prepared: Prepared
    loss: Callable[[Tensor, Tensor], Tensor]

    @property
    def train(self) -> GraphStore:
        """Graphs of the training proteins with labels of this task."""
        return self.prepared.splits["train"]

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Name of each training protein → its number in the store."""
        return {name: number for number, name in enumerate(self.train.names)}

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Proteins that could not be used."""
        return self.prepared.failures

    @property
    def notes(self) -> list[str]:
        """Messages for the user."""
        name = self.task.name
        count = count_noun(len(self.train), "training protein")
        return [*(f"{name}: {note}" for note in self.prepared.notes), f"{name}: {count}, weight {self.weight:g}"]

    def collate(self, names: Sequence[str]) -> Batch | None:
        """Return the batch of those of the proteins that have labels of this task; None if none has."""
        members = [self.numbers[name] for name in names if name in self.numbers]
        return self.train.collate(members) if members else None

    def training_loss(self, batch: Batch, generator: Generator, *, noise: float) -> tuple[Tensor, Tensor]:
        """Compute the loss of a training batch, and the number of labels or proteins of which it is the mean."""
        batch, y = self.task.inputs.apply(batch, generator, training=True)
        if noise:
            batch = add_noise(batch, noise, generator)
        outputs = {name: value.float() for name, value in self.model(batch).items()}
        loss = self.model.head.training_loss(outputs, y)
        if loss is None:
            loss = self.task.batch_loss(self.loss, outputs["logits"], y, batch)
        count = known_labels(y).sum()
        if self.task.loss_per_protein:
            count = torch.full_like(count, batch.num_graphs)
        return loss, count

    def no_loss(self) -> tuple[Tensor, Tensor]:
        """Return a loss of 0 of no labels, with gradients of the head: each process needs those of every parameter."""
        total = torch.stack([parameter.sum() for parameter in self.model.head.parameters()]).sum()
        return 0 * total, torch.zeros_like(total)

    def validate(self) -> dict[str, float]:
        """Compute the monitored metric on validation, as ``{"TASK.METRIC": value}``; empty without a split val."""
        if "val" not in self.prepared.splits:
            return {}
        predictions = predict_split(self.model, self.prepared.splits["val"], self.task)
        metrics = [metric for metric in self.task.metrics if metric.name == self.task.monitor]
        values = compute_metrics(metrics, predictions, task=self.task.name)
        return {f"{self.task.name}.{name}": value for name, value in values.items()}
