"""Labels of the splits before training: metrics that would be undefined, and test sets too small to conclude from."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from protgraph.data.store.graph_store import GraphStore
from protgraph.errors import DatasetError
from protgraph.task.losses import known_labels
from protgraph.task.task import Task
from protgraph.wording import count_noun

__all__ = ["RANKING", "check_split_labels"]

RANKING = ("auprc", "auroc")
"""Metrics that are undefined without a positive and a negative label."""


def check_split_labels(dataset: str, splits: Mapping[str, GraphStore], task: Task) -> tuple[str, ...]:
    """Check that the monitored metric is defined on validation, and return notes on other splits.

    Every split needs a known label; yes/no labels ranked by the area under a curve need positives and negatives. Labels
    per pair, and those that the task draws at random during training, are not checked.
    """
    if task.target.level == "pair" or task.inputs.corrupt is not None:
        return ()
    notes = _check_known(dataset, splits, task)
    if task.target.kind != "multilabel" or task.monitor not in RANKING:
        return notes
    notes = list(notes)
    for split, store in splits.items():
        positive, negative = _count(store)
        if bool(((positive > 0) & (negative > 0)).any()):
            continue
        found = (
            f"split {split!r} of dataset {dataset!r} has {count_noun(len(store), 'protein')} with "
            f"{count_noun(int(positive.sum()), 'positive label')} and {int(negative.sum())} negative"
        )
        if split in ("train", "val"):
            raise DatasetError(
                f"task {task.name!r}: {task.monitor} is undefined: {found}. It needs both. Use --cv 5, another --seed, "
                "or a column 'split' that assigns proteins of both kinds to 'train' and 'val'."
            )
        notes.append(f"{task.monitor} is undefined on {split}: {found}")
    return tuple(notes)


def _check_known(dataset: str, splits: Mapping[str, GraphStore], task: Task) -> tuple[str, ...]:
    """Return a note on test sets without a known label; raise for train and val."""
    notes = []
    for split, store in splits.items():
        if any(known_labels(graph.y).any() for graph in store):
            continue
        found = f"split {split!r} of dataset {dataset!r} has {count_noun(len(store), 'protein')} without a known label"
        if split in ("train", "val"):
            raise DatasetError(
                f"task {task.name!r}: {found}. Assign labeled proteins to 'train' and 'val' in the column 'split', or "
                "remove the column for a random split of the labeled proteins."
            )
        notes.append(f"no score on {split}: {found}")
    return tuple(notes)


def _count(store: GraphStore) -> tuple[Tensor, Tensor]:
    """Return the numbers of positive and negative labels in each column, ``(C,)``."""
    y = torch.cat([graph.y for graph in store])
    return (y == 1).sum(0), (y == 0).sum(0)
