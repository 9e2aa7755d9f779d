"""Where training begins: the loss, and a head that says what the labels' frequencies alone say."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from protgraph.data.store.graph_store import GraphStore
from protgraph.errors import OptionError
from protgraph.nn.module import Head
from protgraph.task.losses import binary_cross_entropy, label_counts, label_prior, label_std
from protgraph.task.task import Task
from protgraph.train.config import FitConfig

__all__ = ["initialize_head"]


def initialize_head(head: Head, task: Task, config: FitConfig, train: GraphStore) -> Callable[[Tensor, Tensor], Tensor]:
    """Make a head begin at the constant of least loss, values in units of their standard deviation; give the loss.

    Parameters
    ----------
    head : Head
        Changed in place.
    task : Task
    config : FitConfig
        Its seed, and the weight of positives.
    train : GraphStore
        Whose labels count.

    Returns
    -------
    callable
        ``(logits, y)`` to a scalar.

    Raises
    ------
    OptionError
        A weight of positives where there are none.
    """
    kind, generator, loss, weight = task.target.kind, torch.Generator().manual_seed(config.seed), task.loss, None
    labels = (task.inputs.apply(protein, generator, training=True)[1] for protein in train)
    found = label_counts(labels, kind, task.target.size)
    if config.pos_weight is not None:
        if kind != "multilabel" or task.loss is not binary_cross_entropy:
            raise OptionError(f"FitConfig: pos_weight is for yes/no labels; task {task.name!r} has {kind}")
        weight = config.pos_weight
        if weight == "balanced":
            weight = (found[1] / found[0].clamp(min=1)).float()
        loss = partial(binary_cross_entropy, pos_weight=weight)
    if head.scale is not None and kind == "regression":
        head.scale.copy_(label_std(found))
    start = label_prior(found, kind, pos_weight=weight)
    if start is not None:
        head.initialize_logits(start)
    return loss
