"""Auxiliary tasks of a run: further heads on the layers of a model, whose losses are added to that of the main task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Generator, Tensor
from torch_geometric.data import Batch

from protgraph.data.datasets.dataset import Dataset
from protgraph.data.store.graph_store import GraphStore
from protgraph.errors import OptionError
from protgraph.evaluation.evaluation import predict_split
from protgraph.labels.loading import load_dataset, resolve_task
from protgraph.labels.preparation import prepare
from protgraph.model.build import ProteinModel
from protgraph.task.metrics import compute_metrics
from protgraph.task.task import Task
from protgraph.train.coordinate_noise import add_noise
from protgraph.wording import count_noun

if TYPE_CHECKING:
    from protgraph.train.config import FitConfig

__all__ = ["AuxiliaryTask", "prepare_auxiliary"]


@dataclass(eq=False)
class AuxiliaryTask:
    """One further task of a run; see the option ``auxiliary`` of :class:`protgraph.train.FitConfig`."""

    task: Task
    weight: float  # factor of its loss
    model: ProteinModel  # the layers of the run's model, and a head of its own
    splits: dict[str, GraphStore]  # "train" and, if the dataset has labels there, "val"
    places: dict[str, int]  # name of each training protein → its number in the store
    loss: Callable[[Tensor, Tensor], Tensor]

    def collate(self, names: Sequence[str]) -> Batch | None:
        """Return the batch of those of the proteins that have labels of this task; None if none has."""
        members = [self.places[name] for name in names if name in self.places]
        return self.splits["train"].collate(members) if members else None

    def weighted_loss(self, batch: Batch, generator: Generator, *, noise: float) -> Tensor:
        """Compute the loss of a training batch times the weight, a scalar."""
        batch, y = self.task.inputs.apply(batch, generator, training=True)
        if noise:
            batch = add_noise(batch, noise, generator)
        outputs = {name: value.float() for name, value in self.model(batch).items()}
        loss = self.model.head.training_loss(outputs, y)
        if loss is None:
            loss = self.task.batch_loss(self.loss, outputs["logits"], y, batch)
        return self.weight * loss

    def validate(self) -> dict[str, float]:
        """Compute the monitored metric on validation, as ``{"TASK.METRIC": value}``; empty without a split val."""
        if "val" not in self.splits:
            return {}
        predictions = predict_split(self.model, self.splits["val"], self.task)
        metrics = [metric for metric in self.task.metrics if metric.name == self.task.monitor]
        values = compute_metrics(metrics, predictions, task=self.task.name)
        return {f"{self.task.name}.{name}": value for name, value in values.items()}


def prepare_auxiliary(
    network: ProteinModel,
    dataset: Dataset,
    task: Task,
    config: FitConfig,
    *,
    cache: str | Path | None,
    jobs: int,
) -> tuple[list[AuxiliaryTask], list[str]]:
    """Prepare the auxiliary tasks of a run, with new heads; also return notes for the user.

    Raises
    ------
    OptionError
        A task is the main task, or needs another kind of training than the sum of losses: a decoder or class weights.
    """
    auxiliary = []
    notes = []
    for number, (name, weight) in enumerate(config.auxiliary.items(), 1):
        if name == task.name:
            raise OptionError(f"FitConfig: auxiliary has {name!r}, which is the main task. Name other tasks.")
        labeled = load_dataset(dataset, task=name, cache=cache)
        other = resolve_task(name, labeled)
        if other.inputs.causal:
            raise OptionError(f"FitConfig: auxiliary has {name!r}, for causal models. Train it as the main task.")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed + number)
            model = network.for_target(other.target)
        prepared = prepare(labeled, other, network.plan, cache=cache, jobs=jobs)
        train = prepared.splits["train"]
        places = {protein: i for i, protein in enumerate(train.names)}
        splits = {split: store for split, store in prepared.splits.items() if split in ("train", "val")}
        auxiliary.append(AuxiliaryTask(other, weight, model, splits, places, other.loss))
        notes += [f"{name}: {note}" for note in prepared.notes]
        notes += [f"{name}: {count_noun(len(train), 'training protein')}, weight {weight:g}"]
    return auxiliary, notes
