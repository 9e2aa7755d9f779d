"""Set up a training run: network, dataset, task and prepared graphs, checked against each other, and its module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protgraph.data.datasets.dataset import Dataset
from protgraph.errors import MissingCoordinatesError
from protgraph.model.build import ProteinModel, build_model
from protgraph.model.compiled_layers import compile_layers, uncompiled_layers
from protgraph.model.spec import ModelSpec
from protgraph.task.task import Task
from protgraph.train.causality_check import check_causal
from protgraph.train.config import FitConfig
from protgraph.train.coordinate_noise import check_noise_allowed
from protgraph.train.head_init import class_weights, count_labels, initialize_head, positive_weight, training_loss
from protgraph.train.label_check import check_split_labels
from protgraph.train.prepare import Prepared, prepare
from protgraph.train.resolve import resolve_task
from protgraph.train.split_check import describe_split_overlap, empty_split_error, with_failures
from protgraph.train.standardization import standardize_inputs

if TYPE_CHECKING:
    from protgraph.train.module import FitModule

__all__ = ["RunSetup", "set_up_run"]


@dataclass(frozen=True, eq=False)
class RunSetup:
    """Everything that a run needs before Lightning starts; see :func:`set_up_run`.

    Parameters
    ----------
    network : ProteinModel
        With its initial weights.
    dataset : Dataset
    task : Task
    config : FitConfig
    prepared : Prepared
        Graphs with labels; the notes include those about the splits.
    """

    network: ProteinModel
    dataset: Dataset
    task: Task
    config: FitConfig
    prepared: Prepared

    def module(self) -> FitModule:
        """Standardize the inputs, initialize the head, and return the Lightning module.

        It draws from torch's generator: call it in :func:`protgraph.train.session.reproducible`.
        """
        from protgraph.train.module import FitModule  # Lightning is imported only to train

        network, task, train = self.network, self.task, self.prepared.splits["train"]
        if self.config.standardize:
            standardize_inputs(network, task, train)
        counts = count_labels(task, train, seed=self.config.seed)
        weight = positive_weight(task, self.config, counts)
        if weight is None:
            weight = class_weights(task, self.config, counts)
        initialize_head(network.head, task, counts, weight)
        if self.config.compile:
            compile_layers(network)
        return FitModule(network, task, self.config, loss=training_loss(task, weight, counts))


def set_up_run(
    model: str | ModelSpec | Mapping[str, Any],
    dataset: Dataset,
    task: str | Task | None,
    config: FitConfig,
    *,
    cache: str | Path | None,
    jobs: int,
) -> RunSetup:
    """Build the network and prepare the graphs of a run; the arguments are those of :func:`protgraph.train.fit`."""
    task = resolve_task(task, dataset)
    network = build_model(model, task.target, seed=config.seed)
    task = task if network.decoder is None else task.for_decoder()
    _check_inputs(network, task, config)
    prepared = prepare(dataset, task, network.plan, cache=cache, jobs=jobs)
    with with_failures(prepared.failures):
        notes = (*prepared.notes, *_check_prepared(prepared, network, dataset, task))
    if config.compile:
        notes = (*notes, *(f"not compiled: {layer}" for layer in uncompiled_layers(network)))
    return RunSetup(network, dataset, task, config, replace(prepared, notes=notes))


def _check_inputs(network: ProteinModel, task: Task, config: FitConfig) -> None:
    if config.noise:
        check_noise_allowed(network.plan)
    if "coordinates" in task.inputs.hidden and network.needs_coordinates is not None:
        raise MissingCoordinatesError(
            f"Task {task.name!r} shows the sequence only, but {network.needs_coordinates} of model "
            f"{network.spec.name!r} needs a structure. Use a model that reads sequences, e.g. 'sequence_mlp'."
        )


def _check_prepared(prepared: Prepared, network: ProteinModel, dataset: Dataset, task: Task) -> tuple[str, ...]:
    """Raise if the splits cannot be trained or validated on; return notes about the others."""
    if "val" not in prepared.splits:
        examples = dataset.examples(task.name)
        raise empty_split_error(dataset.name, task.name, "val", examples, prepared.failures, prepared.splits)
    if task.inputs.causal:
        check_causal(network, prepared.splits["train"], task)
    overlap = describe_split_overlap(dataset.name, prepared.splits)
    return (*check_split_labels(dataset.name, prepared.splits, task), *overlap)
