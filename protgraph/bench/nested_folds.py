"""Folds for risk assessment with inner model selection: a test fold, and a holdout of the other graphs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from protgraph.data.datasets.dataset import Dataset
from protgraph.data.datasets.graph_dataset import GraphDataset
from protgraph.errors import DatasetError

__all__ = ["NestedFold", "read_folds", "stratified_folds"]

FOLDS = 10
_HOLDOUT = 0.1  # of the graphs outside the test fold


@dataclass(frozen=True)
class NestedFold:
    """Splits of one fold, as numbers of the examples.

    Parameters
    ----------
    train, val, test : tuple of int
    """

    train: tuple[int, ...]
    val: tuple[int, ...]
    test: tuple[int, ...]

    def splits(self, names: Sequence[str]) -> dict[str, str]:
        """Return the split of each example by name."""
        return {names[i]: split for split in ("train", "val", "test") for i in getattr(self, split)}


def stratified_folds(dataset: Dataset, task: str, *, folds: int = FOLDS, seed: int = 0) -> list[NestedFold]:
    """Return folds in which classes are balanced, each with a balanced holdout of 10 % of the other graphs.

    Not scikit-learn's ``StratifiedKFold``: scikit-learn is not a requirement (scikit-learn 1.9, 2026-11-23). Tests
    compare the numbers of each class with it.

    Parameters
    ----------
    dataset : Dataset
    task : str
        Classification of graphs.
    folds : int
    seed : int
    """
    labels = _labels(dataset, task)
    rng = np.random.default_rng(seed)
    fold = _deal(labels, folds, rng)
    found = []
    for k in range(folds):
        rest = np.flatnonzero(fold != k)
        is_val = _deal(labels[rest], round(1 / _HOLDOUT), rng) == 0
        parts = (rest[~is_val], rest[is_val], np.flatnonzero(fold == k))
        found.append(NestedFold(*(tuple(part.tolist()) for part in parts)))
    return found


def _deal(labels: np.ndarray, parts: int, rng: np.random.Generator) -> np.ndarray:
    """Assign examples to parts of equal size, each with its share of each class; ``(N,)``."""
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    part = np.empty(len(labels), np.int64)
    part[order] = np.arange(len(labels)) % parts
    return part


def _labels(dataset: Dataset, task: str) -> np.ndarray:
    source, target = dataset.source, dataset.target(task)
    if not isinstance(source, GraphDataset) or (target.level, target.kind) != ("graph", "classification"):
        raise DatasetError(
            f"dataset {dataset.name!r}, task {task!r}: {target.kind} per {target.level}. Allowed: classification of "
            "graphs of a list or of a dataset such as tu_enzymes."
        )
    return np.array([int(source.labeled_graph(example)[1]) for example in dataset.examples(task)])


def read_folds(path: str | Path, dataset: Dataset, task: str) -> list[NestedFold]:
    """Read folds from a JSON file of the program of Errica et al. 2020, e.g. ``ENZYMES_splits.json``.

    Raises
    ------
    DatasetError
        The file is not readable, has another layout, or is of another number of graphs.
    """
    count = len(dataset.examples(task))
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        folds = [_fold(one) for one in data]
    except (OSError, ValueError, KeyError, TypeError, IndexError) as e:
        raise DatasetError(
            f"folds not readable: {str(path)!r} ({type(e).__name__}: {e}). Allowed: a JSON list of "
            '{"test": [...], "model_selection": [{"train": [...], "validation": [...]}]}.'
        ) from e
    for number, fold in enumerate(folds):
        if sorted((*fold.train, *fold.val, *fold.test)) != list(range(count)):
            raise DatasetError(
                f"{path}: fold {number} does not have each of the {count} graphs of {dataset.name!r} once. Give the "
                "file of this dataset."
            )
    return folds


def _fold(data: Mapping[str, list]) -> NestedFold:
    inner = data["model_selection"][0]
    return NestedFold(tuple(inner["train"]), tuple(inner["validation"]), tuple(data["test"]))
