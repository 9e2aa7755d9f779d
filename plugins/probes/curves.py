"""Label efficiency: scores by the number of training proteins, of linear heads and of training from scratch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from protgraph_plugins.probes.heads import ProbeRows, fitted_head
from protgraph_plugins.probes.tasks import ProbeSplits

from protgraph.bench import make_figure, save_figure, style_of
from protgraph.data.datasets import resplit
from protgraph.errors import DatasetError
from protgraph.evaluation import bootstrap_scores, percentile_interval
from protgraph.inference import ResultTable
from protgraph.model import ModelSpec
from protgraph.task import Metric
from protgraph.train import FitConfig, fit

__all__ = ["FRACTIONS", "SCRATCH", "CurvePoint", "draw_curve", "linear_points", "scratch_points", "write_curve"]

FRACTIONS = (0.01, 0.05, 0.2, 1.0)
"""Fractions of the training proteins."""

SCRATCH = "from scratch"
"""Name of the network that is trained on the labels alone."""


@dataclass(frozen=True)
class CurvePoint:
    """Test score after training on some proteins.

    Parameters
    ----------
    model : str
    proteins : int
        Training proteins.
    score, low, high : float
        Metric over all rows, and its 95 % interval over clusters of test proteins; NaN if the heads cannot be fitted,
        e.g. because one protein has no positive label.
    """

    model: str
    proteins: int
    score: float
    low: float
    high: float


def linear_points(
    folder: Path, splits: ProbeSplits, metric: Metric, rows: Mapping[str, Mapping[str, ProbeRows]], *, seed: int
) -> list[CurvePoint]:
    """Return the scores of linear heads; ``rows`` are those of each model by split, ``folder`` has fitted heads."""
    points = []
    for model, of_splits in rows.items():
        train, val, test = (of_splits[split] for split in ("train", "val", "test"))
        for count in _counts(len(train.names)):
            try:
                predictions = fitted_head(
                    folder, "linear", splits.target, metric, train.first(count), val, test, seed=seed
                )
            except DatasetError:  # contract: labels of these proteins are all equal
                points.append(CurvePoint(model, count, math.nan, math.nan, math.nan))
                continue
            interval = percentile_interval(bootstrap_scores(predictions, metric, clusters=test.clusters))
            points.append(CurvePoint(model, count, metric(predictions), interval.low, interval.high))
    return points


def scratch_points(
    spec: ModelSpec, splits: ProbeSplits, metric: Metric, train: Sequence[str], *, epochs: int, seed: int
) -> list[CurvePoint]:
    """Train a network on the labels alone; ``train`` are the names of the training proteins in their order."""
    points = []
    for count in _counts(len(train)):
        names = train[:count]
        split_of = dict.fromkeys(names, "train")
        for split in ("val", "test"):
            split_of |= {example.id: split for example in splits.examples[split]}
        dataset = resplit(splits.dataset, splits.task, split_of, f"{len(names)} training proteins")
        config = FitConfig(epochs=epochs, seed=seed, lr=1e-3, batch_residues=512)
        result = fit(replace(spec, weights=""), dataset, splits.task, config=config)
        scores = result.test_scores["test"]
        assert scores.predictions is not None  # contract: of a finished run
        samples = bootstrap_scores(scores.predictions, metric, clusters=scores.clusters)
        interval = percentile_interval(samples)
        score = metric(scores.predictions)
        points.append(CurvePoint(SCRATCH, count, score, interval.low, interval.high))
    return points


def write_curve(points: Sequence[CurvePoint], path: Path) -> None:
    """Write the points as CSV."""
    names = tuple(CurvePoint.__dataclass_fields__)
    ResultTable(names, [tuple(vars(point).values()) for point in points]).write(path)


def draw_curve(points: Sequence[CurvePoint], title: str, metric: Metric, path: Path) -> None:
    """Draw the score of each model by the number of training proteins."""
    figure = make_figure(6.4, 3.4)
    axes = figure.add_subplot()
    for number, model in enumerate(dict.fromkeys(point.model for point in points)):
        line = [point for point in points if point.model == model]
        proteins = [point.proteins for point in line]
        style = style_of(number)
        axes.plot(
            proteins,
            [point.score for point in line],
            marker="o",
            markersize=3.5,
            label=model,
            color=style.color,
            linestyle=style.dashes,
        )
        low, high = [point.low for point in line], [point.high for point in line]
        axes.fill_between(proteins, low, high, color=style.color, alpha=0.08, linewidth=0)
    axes.set_xscale("log")
    axes.set_xlabel("training proteins")
    axes.set_ylabel(f"test {metric.name}")
    axes.set_title(title, loc="left", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
    save_figure(figure, path)


def _counts(proteins: int) -> list[int]:
    """Return the numbers of training proteins, ascending and each once; at least one."""
    return sorted({max(1, math.ceil(fraction * proteins)) for fraction in FRACTIONS})
