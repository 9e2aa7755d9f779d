"""Scores on ``affinity``: the core set and the five family-cold folds, with intervals over families."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from protgraph_datasets.affinity.dataset import FOLDS, Affinity
from protgraph_datasets.affinity.floors import FLOORS, ComplexSize, predict_by_line

from protgraph.errors import LabelError, list_first
from protgraph.evaluation import draw_copies, percentile_interval

__all__ = ["AffinityScore", "Complexes", "floor_scores", "prediction_scores", "read_complexes", "read_affinities"]

CORE = "core"


@dataclass(frozen=True, eq=False)
class Complexes:
    """The C complexes of the dataset.

    Parameters
    ----------
    files : list of str
        Names of the files.
    pK : ndarray
        ``(C,)``.
    family : ndarray
        ``(C,)`` int64.
    splits : dict of str to ndarray
        Name of a test set ("core", "cold 0", …) to the split of each complex, ``(C,)`` str.
    """

    files: list[str]
    pK: np.ndarray
    family: np.ndarray
    splits: dict[str, np.ndarray]


@dataclass(frozen=True)
class AffinityScore:
    """Scores of one method on one test set, with 95 % intervals over its families."""

    method: str
    test_set: str
    complexes: int
    families: int
    pearson: float
    pearson_interval: tuple[float, float]
    rmse: float
    rmse_interval: tuple[float, float]


def read_complexes(dataset: Affinity) -> Complexes:
    """Return labels, families, and the splits of the core set and of each cold fold."""
    examples = dataset.examples("pK")
    files = [example.path.name for example in examples]
    tables = {CORE: {example.path.name: example.split for example in examples}}
    for fold in range(FOLDS):
        with (dataset.folder / f"cold_{fold}.csv").open(encoding="utf-8", newline="") as table:
            tables[f"cold {fold}"] = {row["file"]: row["split"] for row in csv.DictReader(table)}
    splits = {}
    for name, split_of_file in tables.items():
        splits[name] = np.array([split_of_file[file] for file in files])
    labels = dataset.label_rows("pK")
    assert labels is not None  # contract: pK is a column of the dataset
    values = labels.values.ravel()
    return Complexes(
        files=files,
        pK=np.array([values[labels.rows[example.id]].item() for example in examples], np.float64),
        family=np.array([int(dataset.rows[example.id]["cluster"]) for example in examples]),
        splits=splits,
    )


def read_affinities(path: Path) -> dict[str, float]:
    """Read a table of ``protgraph predict``: name of the file to pK.

    Raises
    ------
    LabelError
        The table has no columns ``file`` and ``pK``.
    """
    with path.open(encoding="utf-8", newline="") as table:
        lines = (line for line in table if not line.startswith("#"))
        rows = list(csv.DictReader(lines))
    if not rows or not {"file", "pK"} <= rows[0].keys():
        raise LabelError(f"{path}: no rows with columns file and pK. Give a table of protgraph predict.")
    return {Path(row["file"]).name: float(row["pK"]) for row in rows}


def prediction_scores(
    method: str, complexes: Complexes, predictions: Mapping[str, Mapping[str, float]]
) -> list[AffinityScore]:
    """Score predictions of each test set.

    Parameters
    ----------
    predictions : mapping of str to mapping
        Name of a test set to the pK of its files; others are ignored.

    Raises
    ------
    LabelError
        A complex of the test set has no prediction.
    """
    values = {}
    for name, pK_of_file in predictions.items():
        tested = np.flatnonzero(complexes.splits[name] == "test").tolist()
        missing = [complexes.files[i] for i in tested if complexes.files[i] not in pK_of_file]
        if missing:
            raise LabelError(
                f"{method}: {len(missing)} of {len(tested)} complexes of {name} have no prediction: "
                f"{list_first(missing, 5)}. Predict the folder of structures of the dataset."
            )
        values[name] = np.array([pK_of_file[complexes.files[i]] for i in tested])
    return _scores(method, complexes, values)


def floor_scores(complexes: Complexes, sizes: Sequence[ComplexSize]) -> list[AffinityScore]:
    """Score the mean of train, and a line through each size fitted on train, on all test sets."""
    splits = complexes.splits
    means = {}
    for name, split in splits.items():
        means[name] = np.full((split == "test").sum(), complexes.pK[split == "train"].mean())
    scores = _scores("mean of train", complexes, means)
    for field, method in FLOORS.items():
        x = np.array([getattr(size, field) for size in sizes], np.float64)
        lines = {}
        for name, split in splits.items():
            is_train = split == "train"
            lines[name] = predict_by_line(x[is_train], complexes.pK[is_train], x[split == "test"])
        scores += _scores(method, complexes, lines)
    return scores


def _scores(method: str, complexes: Complexes, values: Mapping[str, np.ndarray]) -> list[AffinityScore]:
    """Score each test set and, if all cold folds are there, their complexes together."""
    scores, pK_of_folds, values_of_folds, families_of_folds = [], [], [], []
    for name, predicted in values.items():
        is_test = complexes.splits[name] == "test"
        pK, family = complexes.pK[is_test], complexes.family[is_test]
        scores.append(_score(method, name, pK, predicted, family))
        if name != CORE:
            pK_of_folds.append(pK)
            values_of_folds.append(predicted)
            families_of_folds.append(family)
    if len(pK_of_folds) == FOLDS:
        joined = (np.concatenate(part) for part in (pK_of_folds, values_of_folds, families_of_folds))
        scores.append(_score(method, "cold, all", *joined))
    return scores


def _score(method: str, test_set: str, pK: np.ndarray, predicted: np.ndarray, family: np.ndarray) -> AffinityScore:
    samples = draw_copies(family.tolist())  # (R, C)
    correlations = [_pearson(pK, predicted, weights) for weights in samples]
    errors = [_rmse(pK, predicted, weights) for weights in samples]
    once = np.ones(len(pK))
    pearson_interval = percentile_interval(np.array(correlations))
    rmse_interval = percentile_interval(np.array(errors))
    return AffinityScore(
        method,
        test_set,
        complexes=len(pK),
        families=len(np.unique(family)),
        pearson=_pearson(pK, predicted, once),
        pearson_interval=(pearson_interval.low, pearson_interval.high),
        rmse=_rmse(pK, predicted, once),
        rmse_interval=(rmse_interval.low, rmse_interval.high),
    )


def _pearson(a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> float:
    """Return the correlation of weighted rows; NaN if one side is constant."""
    a = a - np.average(a, weights=weights)
    b = b - np.average(b, weights=weights)
    variance = (weights * a * a).sum() * (weights * b * b).sum()
    if variance < 1e-12:
        return float("nan")
    return float((weights * a * b).sum() / np.sqrt(variance))


def _rmse(a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> float:
    return float(np.sqrt(np.average((a - b) ** 2, weights=weights)))
