"""Checks of tasks: derived labels, loss and metrics."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from protgraph import registry
from protgraph.data.graph.fields import FieldSpec
from protgraph.process_state import RANDOM_STATES
from protgraph.task.losses import known_labels
from protgraph.task.metrics import Metric
from protgraph.task.task import Task
from protgraph.testing.checks.metric_form import changed_tensors
from protgraph.testing.runner import ConformityError, NotApplicable, Runner
from protgraph.testing.structure_inputs import StructureInputs
from protgraph.testing.symmetry import rotations
from protgraph.testing.task_inputs import TaskInputs

__all__ = ["derived_labels", "label_symmetry", "loss", "metrics", "task_builds"]

_ROTATIONS = 4
_SAME_LABEL = 1e-4  # relative, of float32 labels
_SLACK = 1e-6
_SHIFTS = (-1.0, -0.1, 0.1, 1.0)
_COPIES = 100  # 2,600 rows for a task on residues
_SEEDS, _LARGE = 12, 10.0  # of other predictions, which a metric of the best few must notice
_SAME_MEAN = 1e-3  # relative, of float32 sums


def task_builds(runner: Runner) -> None:
    """Check that it is a task under its own name, whose head exists and whose metrics differ in name."""
    task = runner.component.loaded
    if not isinstance(task, Task):
        raise ConformityError(f"{runner.component} is a {type(task).__name__}, not a protgraph Task")
    if runner.component.definition is None and task.name != runner.component.name:
        raise runner.failure(f"its own name is {task.name!r}. Register it under that name.")
    if task.target.head_name not in registry.heads:
        raise runner.failure(f"its target needs head {task.target.head_name!r}, which is missing")
    names = [metric.name for metric in task.metrics]
    if len(set(names)) != len(names):
        raise runner.failure(f"two metrics have one name: {', '.join(names)}")
    if not task.doc:
        raise runner.failure("doc is empty. Describe what is predicted.")


def derived_labels(runner: Runner) -> None:
    """Check that derived labels fit the target on every test protein, and that some are known."""
    inputs = _inputs(runner)
    if not inputs.task.derives_labels:
        raise NotApplicable("it derives no labels")
    known = 0
    for residues in inputs.residues:
        with runner.errors_as_failures("derived labels"):
            known += int(known_labels(torch.from_numpy(inputs.labels(residues))).sum())
    if not known:
        raise runner.failure("all derived labels of the test proteins are unknown")


def label_symmetry(runner: Runner) -> float:
    """Check that derived classes and values are the same after motions of the protein, or rotate as their irreps."""
    inputs = _inputs(runner)
    task = inputs.task
    if not task.derives_labels:
        raise NotApplicable("it derives no labels")
    if task.stored.is_geometric or task.inputs.noise:
        raise NotApplicable("its labels are vectors or positions")
    worst = 0.0
    for residues in inputs.residues:
        with runner.errors_as_failures("derived labels"):
            expected = inputs.labels(residues)
            transforms = rotations()[:_ROTATIONS]
            moved = np.stack([inputs.labels(one) for one in transforms.move(residues)])
        if task.stored.irreps:
            spec = FieldSpec("y", task.stored.level, task.stored.irreps)
            moved = transforms.undo(torch.from_numpy(moved).double(), spec).numpy()
        for labels in moved:
            worst = max(worst, _difference(labels, expected))
        renamed = StructureInputs((residues,)).renamed().residues[0]
        if _difference(inputs.labels(renamed), expected) > _SAME_LABEL:
            raise runner.failure("derived labels change with author residue numbers, or names of chains or the protein")
        if task.stored.level == "node":
            other, order = StructureInputs((residues,)).permuted()
            labels = inputs.labels(other.residues[0])
            if _difference(labels, expected[order["node"].numpy()]) > _SAME_LABEL:
                raise runner.failure("derived labels change with the order of the chains in the file")
    if worst > _SAME_LABEL:
        raise runner.failure(
            f"derived labels change with the orientation or position of the protein "
            f"(relative change {worst:.0e}). Derive them from distances and angles, or state irreps of the target."
        )
    return worst


def _difference(labels: np.ndarray, expected: np.ndarray) -> float:
    if labels.dtype.kind == "i":
        return float((labels != expected).any())
    if (np.isnan(labels) != np.isnan(expected)).any():
        return 1.0
    scale = np.nanmax(np.abs(expected), initial=1e-30)
    return float(np.nanmax(np.abs(labels - expected), initial=0.0) / scale)


def loss(runner: Runner) -> None:
    """Check that the loss is a finite scalar with gradients, ignores unknown labels, and is least for the labels."""
    inputs = _inputs(runner)
    with runner.errors_as_failures("loss"):
        best, gradient = _loss(inputs, inputs.perfect(), inputs.y)
        of_random = [_loss(inputs, inputs.random(seed), inputs.y) for seed in range(3)]
        unknown = torch.full_like(inputs.y, math.nan if inputs.y.is_floating_point() else -1)
        nothing, _ = _loss(inputs, inputs.random(0), unknown)
    values = [best, *(value for value, _ in of_random)]
    if not all(map(math.isfinite, values)):
        raise runner.failure(f"the loss of known labels is {values}")
    if not math.isfinite(nothing):
        raise runner.failure(f"the loss is {nothing} if all labels are unknown (−1 or NaN). Ignore them: return 0.")
    gradients = [gradient for _, gradient in of_random]
    if not all(bool(torch.isfinite(g).all()) for g in (gradient, *gradients)):
        raise runner.failure("the gradient of the loss is not finite")
    if not all(bool(g.any()) for g in gradients):
        raise runner.failure("the loss has no gradient, or a gradient of 0")
    if best > min(values[1:]) + _SLACK:
        raise runner.failure(
            f"the loss is {best:.3g} if every label is predicted, and {min(values[1:]):.3g} for "
            "random predictions. Training minimizes it: its least value belongs to the labels."
        )
    with runner.errors_as_failures("loss"):
        _require_least_at_labels(runner, inputs, best)
        _require_same_again(runner, inputs)
        _require_every_row(runner, inputs.y, gradients)
        _require_mean(runner, inputs)


def _require_least_at_labels(runner: Runner, inputs: TaskInputs, best: float) -> None:
    """Compare with predictions that are shifted by a constant: the loss may have its least value beside the labels."""
    for shift in _SHIFTS:
        value, _ = _loss(inputs, inputs.perfect() + shift, inputs.y)
        if value < best - _SLACK * max(1.0, abs(best)):
            raise runner.failure(
                f"the loss is {best:.3g} if every label is predicted, and {value:.3g} if {shift:g} is added to all "
                "predictions. Its least value belongs to the labels."
            )


def _require_same_again(runner: Runner, inputs: TaskInputs) -> None:
    """Compute the loss twice, with two seeds: it must neither draw random numbers nor set a seed."""
    values, states = [], []
    for number in (1, 2):
        torch.manual_seed(number)
        np.random.seed(number)
        random.seed(number)
        before = [read() for read, _ in RANDOM_STATES.values()]
        values.append(_loss(inputs, inputs.random(0), inputs.y)[0])
        after = [read() for read, _ in RANDOM_STATES.values()]
        states += [name for name, a, b in zip(RANDOM_STATES, before, after, strict=True) if a != b]
    if values[0] != values[1]:
        raise runner.failure(f"the loss is {values[0]:.6g} and then {values[1]:.6g} for the same predictions")
    if states:
        raise runner.failure(f"the loss uses or seeds {states[0]}")


def _require_mean(runner: Runner, inputs: TaskInputs) -> None:
    """Compare with many copies of the labels: a mean does not depend on their number, and reaches the last one."""
    compares_rows = inputs.task.inputs.corrupt is not None  # may compare views of one protein
    if inputs.task.loss_per_protein or compares_rows:
        return
    one_copy, _ = _loss(inputs, inputs.random(0), inputs.y)
    y = inputs.y.repeat(_COPIES, *(1 for _ in inputs.y.shape[1:]))
    values, gradients = [], []
    for seed in range(3):
        logits = inputs.random(seed)
        value, gradient = _loss(inputs, logits.repeat(_COPIES, *(1 for _ in logits.shape[1:])), y)
        values.append(value)
        gradients.append(gradient)
    _require_every_row(runner, y, gradients)
    if abs(values[0] - one_copy) > _SAME_MEAN * max(abs(one_copy), _SLACK):
        raise runner.failure(
            f"the loss is {one_copy:.4g}, and {values[0]:.4g} for {_COPIES} copies of the same predictions and labels. "
            "Return a mean over the known labels: the size of a batch may not change the learning rate."
        )


def _require_every_row(runner: Runner, y: Tensor, gradients: list[Tensor]) -> None:
    """Require a gradient for the prediction of each known label, and none for that of an unknown one."""
    has_gradient = torch.stack([g.flatten(1).any(1) for g in gradients]).any(0)
    known = known_labels(y)
    known = known.flatten(1).any(1) if known.dim() > 1 else known
    if len(known) != len(has_gradient):
        return
    ignored = (known & ~has_gradient).nonzero().flatten().tolist()
    if ignored:
        raise runner.failure(
            f"the loss ignores {len(ignored)} of {int(known.sum())} known labels, e.g. row {ignored[0]}"
        )
    leaked = (~known & has_gradient).nonzero().flatten().tolist()
    if leaked:
        raise runner.failure(
            f"the loss depends on the prediction of row {leaked[0]}, whose label is unknown. Leave it out."
        )


def _loss(inputs: TaskInputs, logits: Tensor, y: Tensor) -> tuple[float, Tensor]:
    logits = logits.float().requires_grad_()
    with torch.enable_grad():
        value = inputs.task.batch_loss(inputs.task.loss, logits, y, inputs.batch)
        gradient = torch.zeros_like(logits)
        if value.requires_grad:
            (gradient,) = torch.autograd.grad(value, logits, allow_unused=True, materialize_grads=True)
    return float(value.detach()), gradient


def metrics(runner: Runner) -> None:
    """Check that every metric is a finite number that is best, in its direction, if every label is predicted."""
    inputs = _inputs(runner)
    for metric in inputs.task.metrics:
        with runner.errors_as_failures(f"metric {metric.name!r}"):
            _require_pure(runner, inputs, metric)
            _require_known_labels_only(runner, inputs, metric)
            best = float(metric(inputs.predictions(inputs.perfect())))
            of_random = [float(metric(inputs.predictions(inputs.random(seed)))) for seed in range(3)]
        if not all(map(math.isfinite, (best, *of_random))):
            raise runner.failure(f"metric {metric.name!r} is {[best, *of_random]}")
        is_monitor = metric.name == inputs.task.monitor
        if is_monitor and min(of_random) == max(of_random) == best:
            raise runner.failure(
                f"metric {metric.name!r} is {best:.3g} for all predictions: it does not depend on them"
            )
        better = max(of_random) > best + _SLACK if metric.mode == "max" else min(of_random) < best - _SLACK
        if better:
            raise runner.failure(
                f"metric {metric.name!r} is {best:.3g} if every label is predicted, and {of_random} "
                f"for random predictions. Its mode is {metric.mode!r}."
            )


def _require_known_labels_only(runner: Runner, inputs: TaskInputs, metric: Metric) -> None:
    """Require that predictions for unknown labels do not matter, and those of both halves of the rows do."""
    usual = inputs.predictions(inputs.random(0))
    known = known_labels(usual.y)
    known = known.flatten(1).any(1) if known.dim() > 1 else known
    value = float(metric(usual))
    is_sensitive = False
    for seed in range(1, _SEEDS):
        other = inputs.predictions(inputs.random(seed)).logits
        is_sensitive = is_sensitive or float(metric(replace(usual, logits=other))) != value
        changed = float(metric(replace(usual, logits=_where(known, usual.logits, other))))
        if abs(changed - value) > _SLACK:
            raise runner.failure(
                f"metric {metric.name!r} is {value:.4g}, and {changed:.4g} after a change of predictions whose labels "
                "are unknown (−1 or NaN). Leave them out."
            )
    is_monitor = metric.name == inputs.task.monitor
    if is_monitor and is_sensitive and inputs.task.inputs.corrupt is None:
        _require_both_halves(runner, inputs, metric, len(known))


def _require_both_halves(runner: Runner, inputs: TaskInputs, metric: Metric, rows: int) -> None:
    """Require that the predictions of the first half of the rows matter, and those of the last half."""
    usual = inputs.predictions(inputs.random(0))
    value = float(metric(usual))
    is_first = torch.arange(rows) < rows // 2
    for half, is_kept in (("first", ~is_first), ("last", is_first)):
        values = []
        for seed in range(1, _SEEDS):
            other = _LARGE * inputs.predictions(inputs.random(seed)).logits
            values.append(float(metric(replace(usual, logits=_where(is_kept, usual.logits, other)))))
        if set(values) == {value}:
            raise runner.failure(
                f"metric {metric.name!r} does not depend on the predictions of the {half} half of the rows"
            )


def _where(kept: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Return rows of a, and of b where they are not kept."""
    return torch.where(kept.view(-1, *(1 for _ in a.shape[1:])), a, b)


def _require_pure(runner: Runner, inputs: TaskInputs, metric: Metric) -> None:
    """Require that a metric changes neither its predictions nor a random state."""
    predictions = inputs.predictions(inputs.random(0)).copy()
    torch.manual_seed(101)  # not a state that the metric may set
    before, states = predictions.copy(), [read() for read, _ in RANDOM_STATES.values()]
    metric.function(predictions)
    if changed := changed_tensors(before, predictions):
        raise runner.failure(f"metric {metric.name!r} changes {changed[0]!r} of the predictions. Change a copy.")
    if states != [read() for read, _ in RANDOM_STATES.values()]:
        raise runner.failure(f"metric {metric.name!r} uses or seeds random numbers")


def _inputs(runner: Runner) -> TaskInputs:
    return runner.component.task_inputs
