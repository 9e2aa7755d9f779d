"""Set up a training run: network, dataset, task and prepared graphs, checked against each other, and its module."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from protgraph.checkpoint.adapters import add_adapters
from protgraph.checkpoint.checkpoint_file import load_parent
from protgraph.checkpoint.checkpoint_header import AdapterBase, weights_digest
from protgraph.checkpoint.starting_point import StartingPoint, load_starting_point
from protgraph.data.datasets.dataset import Dataset
from protgraph.data.graph.fields import FieldSpec
from protgraph.data.store.graph_store import GraphStore
from protgraph.data.store.loader import pack
from protgraph.errors import MissingCoordinatesError, OptionError, list_first, suggest
from protgraph.evaluation.evaluation import collate_evaluation
from protgraph.labels.loading import DatasetSource, load_dataset, resolve_task
from protgraph.labels.preparation import Prepared, prepare
from protgraph.model.build import ProteinModel, build_model
from protgraph.model.devices import compile_layers, uncompiled_layers
from protgraph.model.frozen_parts import matches_part
from protgraph.model.spec import ModelSpec
from protgraph.model.summary import check_pattern
from protgraph.nn.module import GraphLayer, Head
from protgraph.nn.standardize import Standardize
from protgraph.task.losses import (
    binary_cross_entropy,
    cross_entropy,
    label_counts,
    label_prior,
    label_std,
    squared_error,
)
from protgraph.task.task import Task
from protgraph.train.auxiliary import AuxiliaryTask
from protgraph.train.config import FitConfig
from protgraph.train.coordinate_noise import check_noise_allowed

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from protgraph.train.module import FitModule

__all__ = [
    "RunSetup",
    "check_parts",
    "class_weights",
    "count_labels",
    "initialize_head",
    "positive_weight",
    "set_up_run",
    "standardize_inputs",
    "training_loss",
]


@dataclass(frozen=True, eq=False)
class RunSetup:
    """Everything that a run needs before Lightning starts; see :func:`set_up_run`."""

    network: ProteinModel  # with its initial weights
    task: Task
    config: FitConfig
    prepared: Prepared  # graphs with labels; the notes include those about the splits
    auxiliary: Sequence[AuxiliaryTask] = ()
    start: StartingPoint | None = None  # of trained weights
    base: AdapterBase | None = None  # of low-rank terms

    def module(self) -> FitModule:
        """Standardize the inputs, initialize the head, and return the Lightning module.

        It draws from torch's generator: call it in :func:`protgraph.train.session.reproducible`.
        """
        from protgraph.train.module import FitModule  # Lightning is imported only to train

        network, task, train = self.network, self.task, self.prepared.splits["train"]
        if self.config.standardize:
            standardize_inputs(network, task, train, start=self.start)
        counts = count_labels(task, train, seed=self.config.seed)
        weight = positive_weight(task, self.config, counts)
        if weight is None:
            weight = class_weights(task, self.config, counts)
        if self.start is None or not self.start.keeps_head:
            initialize_head(network.head, task, counts, weight)
        for auxiliary in self.auxiliary:
            labels = count_labels(auxiliary.task, auxiliary.train, seed=self.config.seed)
            initialize_head(auxiliary.model.head, auxiliary.task, labels)
            auxiliary.loss = training_loss(auxiliary.task, None, labels)
        if self.config.lora:
            add_adapters(network, self.config.lora, seed=self.config.seed)
        if self.config.compile:
            compile_layers(network)
        loss = training_loss(task, weight, counts)
        return FitModule(network, task, self.config, loss=loss, auxiliary=self.auxiliary)


def set_up_run(
    model: str | ModelSpec | Mapping[str, Any],
    dataset: DatasetSource | Sequence[Data],
    task: str | Task | None,
    config: FitConfig,
    *,
    cache: str | Path | None,
    jobs: int,
) -> RunSetup:
    """Build the network and prepare the graphs of a run; the arguments are those of :func:`protgraph.train.fit`."""
    # a dataset with the task and the auxiliary ones, which may derive their labels
    for name in (task, *config.auxiliary):
        dataset = load_dataset(dataset, task=name, cache=cache)
    assert isinstance(dataset, Dataset)  # contract: load_dataset returns it
    task = resolve_task(task, dataset)
    auxiliary_tasks: dict[str, Task] = {}
    for name in config.auxiliary:
        auxiliary_tasks[name] = resolve_task(name, dataset)
    _check_auxiliary(task, auxiliary_tasks)

    network = build_model(model, task.target, seed=config.seed)
    task = task if network.decoder is None else task.for_decoder()
    _check_inputs(network, task, config)
    start = (
        None if config.start_from is None else load_starting_point(network, load_parent(config.start_from), config.head)
    )
    check_parts(network, config)
    base = None
    if config.lora:
        digest = weights_digest(network.get_submodule("layers"))
        base = AdapterBase(source=config.start_from, seed=config.seed, digest=digest, lora=config.lora)

    # graphs of the task, with all checks, and of the auxiliary tasks, each with a new head
    prepared = prepare(dataset, task, network.plan, cache=cache, jobs=jobs, trained=network)
    notes, failures = [*prepared.notes], [*prepared.failures]
    auxiliary: list[AuxiliaryTask] = []
    for name, other in auxiliary_tasks.items():
        graphs = prepare(dataset, other, network.plan, cache=cache, jobs=jobs)
        of_task = _with_new_head(network, other, seed=config.seed + len(auxiliary) + 1)
        auxiliary.append(AuxiliaryTask(other, config.auxiliary[name], of_task, graphs, other.loss))
        notes += auxiliary[-1].notes
        failures += [failure for failure in graphs.failures if failure not in failures]
    if config.compile:
        notes += [f"not compiled: {layer}" for layer in uncompiled_layers(network)]
    prepared = replace(prepared, notes=tuple(notes), failures=tuple(failures))
    return RunSetup(network, task, config, prepared, auxiliary, start, base)


def _check_auxiliary(task: Task, auxiliary: Mapping[str, Task]) -> None:
    for name, other in auxiliary.items():
        if name == task.name:
            raise OptionError(f"FitConfig: auxiliary has {name!r}, which is the main task. Name other tasks.")
        if other.inputs.causal:
            raise OptionError(f"FitConfig: auxiliary has {name!r}, for causal models. Train it as the main task.")


def _with_new_head(network: ProteinModel, task: Task, *, seed: int) -> ProteinModel:
    """Return a model of the same layers with a new head, whose weights do not depend on other random numbers."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return network.for_target(task.target)


def check_parts(network: ProteinModel, config: FitConfig) -> None:
    """Raise if a pattern of the options matches nothing, nothing is left to train, or ``head`` has no effect."""
    for option in ("freeze", "unfreeze_after", "lr_scale"):
        for pattern in getattr(config, option):
            check_pattern(network, pattern, f"FitConfig: {option}")
    if config.head is not None and config.start_from is None:
        raise OptionError(
            f"FitConfig: head = {config.head!r} has no effect without start_from. Give a checkpoint, or leave it out."
        )
    if config.lora:
        _check_lora(network, config)
    else:
        _check_trainable(network, config)


def _check_lora(network: ProteinModel, config: FitConfig) -> None:
    linear_maps = [path for path, module in network.named_modules() if isinstance(module, nn.Linear)]
    for pattern in config.lora:
        if not any(matches_part(path, pattern) for path in linear_maps):
            raise OptionError(
                f"FitConfig: lora: {pattern!r} matches no linear map of model {network.spec.name!r}. It has "
                f"{list_first(linear_maps, 20) or 'none'}."
            )


def _check_trainable(network: ProteinModel, config: FitConfig) -> None:
    """Raise if no parameter is trained in an epoch; a model without parameters may have none."""
    trainable = [name for name, parameter in network.named_parameters() if parameter.requires_grad]
    for epoch in range(config.epochs) if trainable else ():
        if all(config.is_frozen(name, epoch) for name in trainable):
            raise OptionError(
                f"FitConfig: all parts of model {network.spec.name!r} are frozen in epoch {epoch + 1}. Leave at least "
                "one part out of freeze and unfreeze_after, e.g. the head."
            )


def _check_inputs(network: ProteinModel, task: Task, config: FitConfig) -> None:
    if config.noise:
        check_noise_allowed(network.plan)
    if "coordinates" in task.inputs.hidden and network.needs_coordinates is not None:
        raise MissingCoordinatesError(
            f"Task {task.name!r} shows the sequence only, but {network.needs_coordinates} of model "
            f"{network.spec.name!r} needs a structure. Use a model that reads sequences, e.g. 'sequence_mlp'."
        )


def count_labels(task: Task, store: GraphStore, *, seed: int) -> Tensor | None:
    """Sum the label statistics of all proteins; see :func:`protgraph.task.losses.label_counts`."""
    generator = torch.Generator().manual_seed(seed)
    labels = (task.inputs.apply(protein, generator, training=True)[1] for protein in store)
    return label_counts(labels, task.target.kind, task.target.size, task.target.irreps)


def positive_weight(task: Task, config: FitConfig, counts: Tensor | None) -> Tensor | float | None:
    """Return the weight of positives in the loss, one number or ``(C,)``; None for 1.

    ``counts`` is the result of :func:`count_labels`, ``(2, C)`` for yes/no labels.
    """
    if config.pos_weight is None:
        return None
    kind = task.target.kind
    if kind != "multilabel" or task.loss is not binary_cross_entropy:
        raise OptionError(
            f"FitConfig: pos_weight = {config.pos_weight!r}, but the labels of task {task.name!r} are {kind}. "
            "It needs yes/no labels (multilabel) and binary cross-entropy."
            + (" Use class_weight (--class-weight) for classes." if kind == "classification" else "")
        )
    if config.pos_weight == "balanced":
        assert counts is not None  # of yes/no labels
        return (counts[1] / counts[0].clamp(min=1)).float()
    return config.pos_weight


def class_weights(task: Task, config: FitConfig, counts: Tensor | None) -> Tensor | None:
    """Return the weights of the classes in the loss, ``(C,)``; None for 1.

    ``counts (C,)`` is the result of :func:`count_labels` for classes. Balanced weights are inversely proportional to
    them, and 1 on average over the labels.
    """
    if config.class_weight is None:
        return None
    target, weights = task.target, config.class_weight
    if target.kind != "classification" or task.loss is not cross_entropy:
        raise OptionError(
            f"FitConfig: class_weight = {weights!r}, but the labels of task {task.name!r} are {target.kind}. It needs "
            "classes (classification) and cross-entropy."
            + (" Use pos_weight (--pos-weight) for binary labels." if target.kind == "multilabel" else "")
        )
    if weights == "balanced":
        assert counts is not None  # of classes
        return (counts.sum() / (target.size * counts.clamp(min=1))).float()
    names = target.names or tuple(map(str, range(target.size)))
    for name in weights:
        if name not in names:
            raise OptionError(
                f"FitConfig: class_weight has {name!r}: not a class of task {task.name!r}."
                f"{suggest(name, names)} Classes: {list_first(list(names), 20)}."
            )
    return torch.tensor([weights.get(name, 1.0) for name in names])


def training_loss(
    task: Task, weight: Tensor | float | None, counts: Tensor | None = None
) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the loss function ``(logits, y)`` → scalar, with weights of labels or of standardized values.

    ``weight`` is the result of :func:`positive_weight` or :func:`class_weights`, one number or ``(C,)``.

    ``counts`` is the result of :func:`count_labels`, ``(3, C)`` for a regression. The squared error of a regression is
    divided by the standard deviation of the training labels, so that neither the unit of a label nor the size of
    another column matters: predicting the mean has a loss of 1. Any other loss of a regression is in the unit of the
    labels.
    """
    if weight is not None and task.target.kind == "classification":
        assert isinstance(weight, Tensor)  # of class_weights
        return partial(cross_entropy, weight=weight)
    if weight is not None:
        return partial(binary_cross_entropy, pos_weight=weight)
    if counts is not None and task.target.kind == "regression" and task.loss is squared_error:
        return partial(squared_error, scale=label_std(counts))
    return task.loss


def initialize_head(head: Head, task: Task, counts: Tensor | None, weight: Tensor | float | None = None) -> None:
    """Set the bias of a head to the constant with the least loss, and its scale and shift to those of the labels.

    ``counts``: result of :func:`count_labels` for the training split: ``(C,)``, ``(2, C)`` or ``(3, C)``. ``weight``:
    weight of positives, one number or ``(C,)``, or of each class, ``(C,)``.
    """
    kind = task.target.kind
    if kind == "classification":
        assert weight is None or isinstance(weight, Tensor)  # of class_weights
        prior = label_prior(counts, kind, class_weight=weight)
    else:
        prior = label_prior(counts, kind, pos_weight=weight)
    if kind == "regression" and counts is not None and prior is not None:
        if head.scale is not None:
            head.scale.copy_(label_std(counts))
        if head.shift is not None:
            head.shift.copy_(prior)
    if prior is not None:
        head.initialize_logits(prior)


_CONSTANT = 0.01  # columns with a smaller standard deviation have scale 1
_LARGEST = 10.0  # largest absolute value over scale in the training split
_RESIDUES = 20_000  # statistics are of evenly spaced training proteins with about as many residues
_BATCH = 4096


class _Statistics:
    """Statistics of the columns of a field, each ``(F,)`` float64, over the known values of batches."""

    def __init__(self) -> None:
        self.count = self.sum = self.squares = torch.zeros(1, dtype=torch.float64)
        self.largest = torch.zeros(1, dtype=torch.float64)
        self.is_binary = torch.ones(1, dtype=torch.bool)

    def add(self, x: Tensor) -> None:
        """Add a batch ``(N, …)``, of several columns without the rows in which all are 0."""
        x = x.reshape(len(x), -1).double()
        if x.size(1) > 1:
            x = x[(x != 0).any(1)]
        if not len(x):
            return
        known = ~x.isnan()
        x = torch.where(known, x, 0.0)
        self.count, self.sum = self.count + known.sum(0), self.sum + x.sum(0)
        self.squares = self.squares + x.square().sum(0)
        self.largest = torch.maximum(self.largest, x.abs().amax(0))
        self.is_binary = self.is_binary & ((x == 0) | (x == 1)).all(0)

    def mean_and_scale(self, spec: FieldSpec) -> tuple[Tensor, Tensor]:
        """Return mean and scale; 0 and 1 for columns that are not standardized."""
        is_odd = torch.tensor([term.ir.p < 0 for term in spec.o3 for _ in range(term.dim)])
        count = self.count.clamp(min=1)
        mean = torch.where(is_odd, 0.0, self.sum / count)
        sd = (self.squares / count - mean.square()).clamp(min=0).sqrt()
        scale = torch.where(sd >= _CONSTANT, torch.maximum(sd, self.largest / _LARGEST), 1.0)
        return torch.where(self.is_binary, 0.0, mean).float(), torch.where(self.is_binary, 1.0, scale).float()


def standardize_inputs(
    model: ProteinModel, task: Task, store: GraphStore, *, start: StartingPoint | None = None
) -> None:
    """Set mean and scale of the features that enter linear maps, from the training split.

    Layers that a starting point has loaded keep theirs.

    Notes
    -----
    ``0e`` columns become (x − mean) / scale with the standard deviation as scale. ``0o`` columns, which change sign
    under reflections, become x / scale with the root mean square. The scale is at least a tenth of the largest absolute
    value, so that rarely used columns are not amplified, and 1 for standard deviations below 0.01. Columns of 0 and 1
    only, and fields that a layer wrote, are left as they are. Unknown values (NaN) are not counted, and neither are
    rows of a field with 0 in every column: some featurizers compute some residues only, e.g. mutated ones.
    """
    readers = list(_readers(model, start))
    names = {field for _, fields in readers for field in fields.values()}
    if not names:
        return
    statistics = _statistics(model, task, store, names)
    for standardize, fields in readers:
        mean, scale = torch.zeros(standardize.width), torch.ones(standardize.width)
        for local, field in fields.items():
            part, one = standardize.columns[local], statistics[field]
            mean[part], scale[part] = one.mean_and_scale(model.plan.fields[field])
        if bool((mean != 0).any() or (scale != 1).any()):
            standardize.set_columns(mean, scale)


def _readers(model: ProteinModel, start: StartingPoint | None) -> Iterator[tuple[Standardize, dict[str, str]]]:
    """Yield each standardization to set and the floating-point features that it reads, local name to field."""
    written: set[str] = set()
    loaded: list[GraphLayer] = []
    if start is not None:
        loaded = [layer for number, layer in enumerate(model.layers) if start.keeps_layer(number)]
    for wires, layer in model.steps:
        standardize = getattr(layer, "standardize", None)
        if isinstance(standardize, Standardize) and layer not in loaded:
            features = {}
            for local in standardize.columns:
                field = wires.reads[local]
                if field in written:  # an output of a layer
                    continue
                if model.plan.fields[field].dtype.startswith(("float", "bfloat")):
                    features[local] = field
            yield standardize, features
        written |= set(wires.writes.values())


def _statistics(model: ProteinModel, task: Task, store: GraphStore, names: set[str]) -> dict[str, _Statistics]:
    """Compute the statistics of fields over the training split, or a sample of its proteins if it is large."""
    step = max(1, round(store.num_residues / _RESIDUES))
    statistics = {name: _Statistics() for name in names}
    with torch.no_grad():
        for members in pack(range(0, len(store), step), lambda i: int(store.sizes[i]), max_size=_BATCH):
            batch = collate_evaluation(store, members, task)
            f = model.fields_of(batch)
            for name, one in statistics.items():
                one.add(f[name])
    return statistics
