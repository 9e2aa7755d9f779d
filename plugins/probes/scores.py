"""Scores of heads on the vectors of several models, with intervals, and tests of the first model against the others."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from protgraph.bench import cluster_means, compare_ranks, holm, sign_permutation_tests, values_by_protein
from protgraph.evaluation import bootstrap_scores, percentile_interval
from protgraph.file_io import write_text_file
from protgraph.inference import ResultTable
from protgraph.task import Metric, SplitPredictions

__all__ = ["ProbeScore", "SkippedTask", "probe_scores", "probe_table", "write_probe_scores"]

_LEVEL = 0.05


@dataclass(frozen=True)
class ProbeScore:
    """Score of a head on the vectors of one model, on the test proteins of a task.

    Parameters
    ----------
    task, head, model, metric : str
    score, low, high : float
        Metric over all rows, and its 95 % interval over clusters of proteins.
    floor : float
        Metric of a constant prediction; NaN if it is undefined.
    proteins, clusters, rows : int
        Test proteins, their clusters, and labels.
    difference, difference_low, difference_high : float
        Score of the first model minus this one, and its 95 % interval over the same samples of clusters; NaN for the
        first model.
    p_holm : float
        Sign permutation test of the mean difference of clusters, adjusted for the number of models; NaN if the metric
        is undefined for single proteins.
    """

    task: str
    head: str
    model: str
    metric: str
    score: float
    low: float
    high: float
    floor: float
    proteins: int
    clusters: int
    rows: int
    difference: float
    difference_low: float
    difference_high: float
    p_holm: float


@dataclass(frozen=True)
class SkippedTask:
    """Task without scores, and the reason."""

    task: str
    reason: str


def probe_scores(
    task: str,
    head: str,
    metric: Metric,
    predictions: Mapping[str, SplitPredictions],
    clusters: Sequence[int],
    floor: SplitPredictions,
) -> list[ProbeScore]:
    """Return the scores of the models on one task; ``predictions`` are of the same rows, the first model first.

    Parameters
    ----------
    clusters : sequence of int
        Cluster of each protein.
    floor : SplitPredictions
        Constant prediction.
    """
    of_clusters: list[np.ndarray] = []
    samples: list[np.ndarray] = []
    for rows in predictions.values():
        of_clusters.append(cluster_means(values_by_protein(rows, len(clusters), metric), clusters))
        samples.append(bootstrap_scores(rows, metric, clusters=clusters))  # the same draws for each model
    differences = np.stack([of_clusters[0] - values for values in of_clusters[1:]] or [of_clusters[0] * np.nan])
    is_tested = (~np.isnan(differences)).sum(1) > 1
    p_values = [
        p if tested else np.nan for p, tested in zip(sign_permutation_tests(differences), is_tested, strict=True)
    ]
    p_holm = [np.nan, *holm(p_values)]

    first_score = metric(next(iter(predictions.values())))
    scores = []
    for number, (model, rows) in enumerate(predictions.items()):
        score, interval = metric(rows), percentile_interval(samples[number])
        difference = percentile_interval(samples[0] - samples[number])
        is_first = number == 0
        scores.append(
            ProbeScore(
                task,
                head,
                model,
                metric.name,
                score,
                interval.low,
                interval.high,
                metric(floor),
                len(clusters),
                len(set(clusters)),
                len(rows.y),
                np.nan if is_first else first_score - score,
                np.nan if is_first else difference.low,
                np.nan if is_first else difference.high,
                p_holm[number],
            )
        )
    return scores


def probe_table(head: str, scores: Sequence[ProbeScore], skipped: Sequence[SkippedTask]) -> str:
    """Return a Markdown table of one head: a row per task, then mean ranks and the comparison with the first model."""
    of_tasks: dict[str, list[ProbeScore]] = {}
    for score in scores:
        if score.head == head:
            of_tasks.setdefault(score.task, []).append(score)
    models = [score.model for score in next(iter(of_tasks.values()), [])]
    rows = [[f"{head} head", "metric", "proteins", "labels", "floor", *models]]
    rows.append(["---", "---", "---:", "---:", "---:", *["---"] * len(models)])
    rows += [_task_row(of_models) for of_models in of_tasks.values()]
    if of_tasks:
        rows += _summary_rows(models, list(of_tasks.values()))
    for task in skipped:
        rows.append([task.task, task.reason, "", "", "", *[""] * len(models)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _task_row(of_models: Sequence[ProbeScore]) -> list[str]:
    """Return the row of a task from the scores of all models."""
    first = of_models[0]
    floor = "–" if np.isnan(first.floor) else f"{first.floor:.3f}"
    counts = [str(first.proteins), str(first.rows)]
    return [first.task, first.metric, *counts, floor, *[_cell(score) for score in of_models]]


def _summary_rows(models: Sequence[str], of_tasks: Sequence[Sequence[ProbeScore]]) -> list[list[str]]:
    """Return the row of mean ranks, if there are several tasks, and that of the tasks in which the first is better."""
    values = np.zeros((len(models), len(of_tasks)))
    wins = []
    for number, of_model in enumerate(zip(*of_tasks, strict=True)):  # the scores of a model, of all tasks
        values[number] = [score.score for score in of_model]
        wins.append("" if number == 0 else _wins(of_model))
    rows = []
    ranks = compare_ranks(models, values)
    if ranks is not None:
        rows.append(["mean rank", "", "", "", "", *[f"{rank:.1f}" for rank in ranks.ranks]])
    rows.append([f"{models[0]} is better (significantly better, significantly worse)", "", "", "", "", *wins])
    return rows


def write_probe_scores(
    folder: Path, scores: Sequence[ProbeScore], skipped: Sequence[SkippedTask], options: object
) -> None:
    """Write ``table.csv`` and ``probes.json``."""
    names = tuple(ProbeScore.__dataclass_fields__)
    ResultTable(names, [tuple(asdict(score).values()) for score in scores]).write(folder / "table.csv")
    rows = [_defined(asdict(score)) for score in scores]
    content = {"options": options, "scores": rows, "skipped": [asdict(task) for task in skipped]}
    write_text_file(folder / "probes.json", json.dumps(content, indent=1) + "\n")


def _defined(values: Mapping[str, str | float]) -> dict[str, str | float | None]:
    """Return values with None in place of NaN, which JSON does not have."""
    return {key: None if isinstance(value, float) and np.isnan(value) else value for key, value in values.items()}


def _cell(score: ProbeScore) -> str:
    """Return a score with its interval; a star marks a significant difference from the first model."""
    star = "*" if score.p_holm < _LEVEL else ""  # False for NaN
    return f"{score.score:.3f}{star} [{score.low:.3f}, {score.high:.3f}]"


def _wins(scores: Sequence[ProbeScore]) -> str:
    """Return the number of tasks in which the first model is better than another, e.g. "7 (5, 1)"."""
    better = sum(score.difference > 0 for score in scores)
    clearly_better = sum(score.difference > 0 and score.p_holm < _LEVEL for score in scores)
    clearly_worse = sum(score.difference < 0 and score.p_holm < _LEVEL for score in scores)
    return f"{better} of {len(scores)} ({clearly_better}, {clearly_worse})"
