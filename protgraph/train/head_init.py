"""Label statistics of the training split: weights of labels, loss, and initial bias and scale of the head."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from protgraph.data.store.graph_store import GraphStore
from protgraph.errors import OptionError, list_first, suggest
from protgraph.nn.module import Head
from protgraph.task.losses import (
    binary_cross_entropy,
    cross_entropy,
    label_counts,
    label_prior,
    label_std,
    squared_error,
)
from protgraph.task.task import Task
from protgraph.train.config import FitConfig

__all__ = ["class_weights", "count_labels", "initialize_head", "positive_weight", "training_loss"]


def count_labels(task: Task, store: GraphStore, *, seed: int) -> Tensor | None:
    """Sum the label statistics of all proteins; see :func:`protgraph.task.losses.label_counts`."""
    generator = torch.Generator().manual_seed(seed)
    labels = (task.inputs.apply(protein, generator, training=True)[1] for protein in store)
    return label_counts(labels, task.target.kind, task.target.size)


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
        return (counts[1] / counts[0].clamp(min=1)).float()
    return config.pos_weight


def class_weights(task: Task, config: FitConfig, counts: Tensor | None) -> Tensor | None:
    """Return the weights of the classes in the loss, ``(C,)``; None for 1.

    ``counts (C,)`` is the result of :func:`count_labels` for classes. Balanced weights are inversely proportional to
    them, and 1 on average over the labels.
    """
    if config.class_weight is None:
        return None
    target, given = task.target, config.class_weight
    if target.kind != "classification" or task.loss is not cross_entropy:
        raise OptionError(
            f"FitConfig: class_weight = {given!r}, but the labels of task {task.name!r} are {target.kind}. It needs "
            "classes (classification) and cross-entropy."
            + (" Use pos_weight (--pos-weight) for binary labels." if target.kind == "multilabel" else "")
        )
    if given == "balanced":
        return (counts.sum() / (target.size * counts.clamp(min=1))).float()
    names = target.names or tuple(map(str, range(target.size)))
    for name in given:
        if name not in names:
            raise OptionError(
                f"FitConfig: class_weight has {name!r}: not a class of task {task.name!r}."
                f"{suggest(name, names)} Classes: {list_first(list(names), 20)}."
            )
    return torch.tensor([given.get(name, 1.0) for name in names])


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
        return partial(cross_entropy, weight=weight)
    if weight is not None:
        return partial(binary_cross_entropy, pos_weight=weight)
    if counts is not None and task.target.kind == "regression" and task.loss is squared_error:
        return partial(squared_error, scale=label_std(counts))
    return task.loss


def initialize_head(head: Head, task: Task, counts: Tensor | None, weight: Tensor | float | None = None) -> None:
    """Set the bias of a head to the constant with the least loss, and its scale and shift to those of the labels.

    Parameters
    ----------
    head : Head
        Changed in place.
    task : Task
    counts : Tensor, optional
        Result of :func:`count_labels` for the training split: ``(C,)``, ``(2, C)`` or ``(3, C)``.
    weight : Tensor or float, optional
        Weight of positives or of each class, one number or ``(C,)``.
    """
    kind = task.target.kind
    weights = {"class_weight" if kind == "classification" else "pos_weight": weight}
    prior = label_prior(counts, kind, **weights)
    if head.scale is not None and kind == "regression":
        head.scale.copy_(label_std(counts))
    if head.shift is not None and kind == "regression":
        head.shift.copy_(prior)
    if prior is not None:
        head.initialize_logits(prior)
