"""Checks of metrics: values and direction, order of proteins, weighted samples, and side effects."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from protgraph import registry
from protgraph.data.datasets.target import Target
from protgraph.process_state import RANDOM_STATES
from protgraph.task.metrics import Metric
from protgraph.task.predictions import SplitPredictions
from protgraph.task.task import default_task
from protgraph.testing.runner import ConformityError, NotApplicable, Runner
from protgraph.testing.task_inputs import TaskInputs

__all__ = ["changed_tensors", "metric_builds", "metric_inputs", "metric_order", "metric_values", "metric_weights"]

_SLACK = 1e-6
_SMALL = 1e-2  # values below it are compared with it: sums of float32 that cancel
_SEEDS = 3
_BUILT_IN = ("contact", "inverse_folding", "structure_denoising")
_TARGETS = (
    Target("classes", "node", "classification", 3),
    Target("labels", "node", "multilabel", 2),
    Target("value", "node", "regression", 1),
    Target("values", "node", "regression", 2),
    Target("points", "node", "coordinates", 1),
    Target("backbone", "node", "coordinates", 4),
    Target("classes_of_proteins", "graph", "classification", 3),
    Target("labels_of_proteins", "graph", "multilabel", 1),
    Target("value_of_proteins", "graph", "regression", 1),
)


@cache
def _kinds_of_predictions() -> tuple[TaskInputs, ...]:
    tasks = [*(default_task(target) for target in _TARGETS), *map(registry.tasks.get, _BUILT_IN)]
    return tuple(TaskInputs(task) for task in tasks)


def metric_builds(runner: Runner) -> None:
    """Check that it is a metric under its own name, with a direction and a description."""
    metric = _metric(runner)
    if runner.component.definition is None and metric.name != runner.component.name:
        raise runner.failure(f"its own name is {metric.name!r}. Register it under that name.")
    if metric.mode not in ("max", "min"):
        raise runner.failure(f"its mode is {metric.mode!r}. Allowed: 'max' and 'min'.")
    if not metric.doc:
        raise runner.failure("its function has no docstring, which tables and pages print.")


def metric_values(runner: Runner) -> None:
    """Check that it is a finite number, and best if every label is predicted.

    A metric of some kinds of target may be a number for others by accident. At least as many kinds must confirm
    its direction as contradict it.
    """
    metric = _metric(runner)
    faults = [_fault_of_values(metric, inputs) for inputs in _kinds_of_predictions()]
    fitting = faults.count(None)
    reasons = sorted(fault for fault in faults if fault is not None)
    contradicting = [reason for rank, reason in reasons if rank == 0]
    if fitting and fitting >= len(contradicting):
        return
    if fitting:
        raise runner.failure(f"its direction is not that of its values. {contradicting[0]}")
    # The reasons of the kinds for which it computes a number are the first ones.
    raise runner.failure(f"it fits no kind of target. {reasons[0][1]}")


def metric_inputs(runner: Runner) -> None:
    """Check that it changes neither the predictions nor a random state, and returns the same value again."""
    metric = _metric(runner)
    for name, predictions in _fitting(runner):
        before = predictions.copy()
        states = [read() for read, _ in RANDOM_STATES.values()]
        value = float(metric.function(predictions))
        for changed in changed_tensors(before, predictions):
            raise runner.failure(f"it changes {changed!r} of the predictions ({name})")
        for state, (described, (read, _)) in zip(states, RANDOM_STATES.items(), strict=True):
            if state != read():
                raise runner.failure(f"it uses or seeds {described} ({name})")
        again = float(metric(predictions))
        if again != value:
            raise runner.failure(f"it is {value} and then {again} for the same predictions")


def metric_order(runner: Runner) -> float:
    """Check that it does not depend on the order of the rows."""
    metric, worst = _metric(runner), 0.0
    for name, predictions in _fitting(runner):
        if predictions.pairs is not None:  # pairs are ordered by protein
            continue
        order = torch.randperm(len(predictions.y), generator=torch.Generator().manual_seed(0))
        value, permuted = metric(predictions), metric(_rows(predictions, order))
        error = abs(permuted - value) / max(abs(value), _SMALL)
        if error > _SLACK:
            raise runner.failure(f"it is {value:.6g}, and {permuted:.6g} if the rows are in another order ({name})")
        worst = max(worst, error)
    return worst


def metric_weights(runner: Runner) -> float:
    """Check that ``weighted`` equals the metric of the rows of each protein, repeated."""
    metric, worst = _metric(runner), 0.0
    if metric.weighted is None:
        raise NotApplicable("it has no function 'weighted'")
    for name, predictions in _fitting(runner):
        if predictions.protein is None or predictions.y.dim() > 2:  # intervals of these use the rows
            continue
        owner = predictions.protein.unique(return_inverse=True)[1]
        proteins = int(owner.max()) + 1
        times = np.random.default_rng(0).integers(0, 3, (_SEEDS, proteins))
        times[:, 0] = 1
        values = np.asarray(metric.weighted(predictions, owner, times))
        if values.shape != (_SEEDS,):
            raise runner.failure(f"weighted returns the shape {values.shape}, not {(_SEEDS,)}")
        for copies, value in zip(times, values, strict=True):
            repeated = metric(_repeated(predictions, owner, copies))
            error = abs(float(value) - repeated) / max(abs(repeated), _SMALL)
            if error > _SLACK:
                raise runner.failure(
                    f"weighted gives {float(value):.6g} for copies {copies.tolist()} of the "
                    f"proteins, and the metric of their rows is {repeated:.6g} ({name})"
                )
            worst = max(worst, error)
    return worst


def _metric(runner: Runner) -> Metric:
    metric = runner.component.loaded
    if not isinstance(metric, Metric):
        raise ConformityError(f"{runner.component} is a {type(metric).__name__}, not a protgraph Metric")
    return metric


def _fault_of_values(metric: Metric, inputs: TaskInputs) -> tuple[int, str] | None:
    """Return why a metric does not fit a kind of target, and how far it got; None if it fits."""
    kind = f"{inputs.task.target.kind} per {inputs.task.target.level}"
    try:
        best = metric(inputs.predictions(inputs.perfect()))
        random_values = [metric(inputs.predictions(inputs.random(seed))) for seed in range(_SEEDS)]
    except Exception as e:  # noqa: BLE001 -- a metric of other targets may raise anything
        return 2, f"For {kind} it raises {type(e).__name__}: {e}"
    if not all(map(math.isfinite, (best, *random_values))):
        return 1, f"For {kind} it is {[best, *random_values]}"
    is_better = max(random_values) > best + _SLACK if metric.mode == "max" else min(random_values) < best - _SLACK
    if is_better:
        values = ", ".join(f"{value:.3g}" for value in random_values)
        return 0, (
            f"For {kind} it is {best:.3g} if every label is predicted, and {values} for random predictions. "
            f"Its mode is {metric.mode!r}."
        )
    return None


def _fitting(runner: Runner) -> list[tuple[str, SplitPredictions]]:
    """Return random predictions of the kinds of target that the metric fits, with the name of each kind."""
    metric = _metric(runner)
    fitting = [inputs for inputs in _kinds_of_predictions() if _fault_of_values(metric, inputs) is None]
    if not fitting:
        raise NotApplicable("it fits no kind of target")
    return [(inputs.task.name, inputs.predictions(inputs.random(0)).copy()) for inputs in fitting]


def changed_tensors(before: SplitPredictions, after: SplitPredictions) -> list[str]:
    """Return the names of the tensors that differ."""
    names = [item.name for item in fields(before) if isinstance(getattr(before, item.name), Tensor)]
    return [n for n in names if not torch.equal(getattr(before, n).nan_to_num(), getattr(after, n).nan_to_num())]


def _rows(predictions: SplitPredictions, rows: Tensor) -> SplitPredictions:
    count = len(predictions.y)
    per_row: dict[str, Any] = {}
    for item in fields(predictions):
        value = getattr(predictions, item.name)
        if isinstance(value, Tensor) and len(value) == count:
            per_row[item.name] = value[rows]
    return replace(predictions, **per_row)


def _repeated(predictions: SplitPredictions, owner: Tensor, copies: np.ndarray) -> SplitPredictions:
    """Return the rows of each protein so often, as proteins of their own."""
    numbers = np.repeat(np.arange(len(copies)), copies)
    rows = [(owner == int(number)).nonzero().flatten() for number in numbers]
    copy = torch.cat([torch.full_like(own, i) for i, own in enumerate(rows)])
    return predictions.take(torch.cat(rows), copy)
