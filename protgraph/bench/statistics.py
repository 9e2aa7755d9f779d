"""Statistics of a benchmark over its proteins: intervals, tests of all pairs of models, ranks, groups of proteins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import torch

from protgraph import registry
from protgraph.bench.paired_tests import RankComparison, compare_ranks, holm, sign_permutation_tests
from protgraph.bench.rows import BenchRow
from protgraph.bench.run_predictions import (
    RunPredictions,
    bin_probabilities,
    cluster_means,
    load_predictions,
    protein_values,
    resample_mean,
)
from protgraph.evaluation.bootstrap import (
    RESAMPLES,
    BootstrapInterval,
    bootstrap_scores,
    draw_copies,
    percentile_interval,
)
from protgraph.evaluation.calibration import ReliabilityBins
from protgraph.task.losses import known_labels
from protgraph.task.metrics import Metric, registered_metric

__all__ = [
    "CALIBRATION_ERROR",
    "GroupScore",
    "LEVEL",
    "ModelRuns",
    "PairTest",
    "ScoreEstimate",
    "SplitStatistics",
    "break_down",
    "load_runs",
    "pair_tests",
    "same_rows",
    "split_statistics",
]

#: Name of the expected calibration error in tables.
CALIBRATION_ERROR = "calibration_error"
#: Adjusted p-values below are differences.
LEVEL = 0.05
#: Not a score: the number of chains without one.
_COUNTS = frozenset({"pearson_undefined"})


@dataclass(frozen=True)
class ScoreEstimate:
    """A metric of one model on a tested split.

    ``average``: over all rows of the split together, or the mean of the values of single proteins. Where proteins share
    clusters, the mean over clusters of the mean over their proteins, so that copies count once. ``mode``: "max" or
    "min", the better direction. ``mean``, ``sd``: over seeds; sd is NaN for a single seed. ``interval``: 95 % over
    proteins, or over their clusters, of the mean over seeds. ``proteins``: proteins, or clusters, for which the metric
    is defined; all proteins if pooled.
    """

    model: str
    metric: str
    average: str
    mode: str
    mean: float
    sd: float
    interval: BootstrapInterval
    proteins: int


@dataclass(frozen=True)
class PairTest:
    """Difference of two models in the mean of a metric over the same proteins.

    ``metric``, ``one``, ``other``: metric and models. ``difference``: mean over proteins, or over their clusters, of
    ``one`` minus ``other``, each averaged over its seeds. ``interval``: 95 % over these. ``p_value``, ``p_holm``:
    two-sided sign permutation test; adjusted for all pairs of models in this metric.
    """

    metric: str
    one: str
    other: str
    difference: float
    interval: BootstrapInterval
    p_value: float
    p_holm: float
    proteins: int


@dataclass(frozen=True, eq=False)
class ModelRuns:
    """Predictions of one model on one tested split, of each seed.

    ``modes``: metric → better direction. ``runs``: by seed.
    """

    model: str
    modes: Mapping[str, str]
    runs: Mapping[int, RunPredictions]

    @property
    def metrics(self) -> list[Metric]:
        """Metrics of the task that can be computed from predictions; not those that a plugin defines."""
        return [registry.metrics.get(name) for name in self.modes if name in registry.metrics and name not in _COUNTS]

    @property
    def first(self) -> RunPredictions:
        """Predictions of the first seed."""
        return next(iter(self.runs.values()))

    def protein_values(self, metric: Metric) -> np.ndarray:
        """Return the metric of each protein, mean over seeds, ``(P,)``."""
        return np.mean([protein_values(run, metric) for run in self.runs.values()], axis=0)

    def cluster_values(self, metric: Metric) -> np.ndarray:
        """Return the metric of each cluster, mean over its proteins and over seeds, ``(C,)``."""
        return cluster_means(self.protein_values(metric), self.first.cluster_of_protein)

    def pooled(self, metric: Metric) -> list[float]:
        """Return the metric of all rows together, of each seed."""
        return [float(metric(run.rows)) for run in self.runs.values()]

    def pooled_samples(self, metric: Metric, resamples: int = RESAMPLES) -> np.ndarray:
        """Return the pooled metric of resampled clusters, mean over seeds, ``(resamples,)``."""
        samples = [
            bootstrap_scores(run.rows, metric, clusters=run.clusters, resamples=resamples) for run in self.runs.values()
        ]
        return np.mean(samples, axis=0)

    def reliability(self) -> ReliabilityBins | None:
        """Return the sums of all seeds."""
        bins = _bins(self)
        if bins is None:
            return None
        count = np.sum([run.count for run in bins], axis=0)
        probability = np.sum([run.probability for run in bins], axis=0)
        return ReliabilityBins(count, probability, np.sum([run.positive for run in bins], axis=0))


@dataclass(frozen=True, eq=False)
class SplitStatistics:
    """Statistics of all models on one tested split of a task.

    ``models``: those with predictions. ``pairs``: all pairs of models, for each metric that is defined for single
    proteins. ``ranks``: of the monitored metric. ``left_out``: models with other proteins or labels than the first one;
    they are in no pair.
    """

    dataset: str
    task: str
    split: str
    monitor: str
    models: tuple[ModelRuns, ...] = field(repr=False)
    estimates: tuple[ScoreEstimate, ...] = field(repr=False)
    pairs: tuple[PairTest, ...] = field(repr=False)
    ranks: RankComparison | None = field(repr=False)
    left_out: tuple[str, ...]

    @property
    def mode(self) -> str:
        """Better direction of the monitored metric."""
        return self.models[0].modes.get(self.monitor, "max")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the proteins."""
        return self.models[0].first.names

    @property
    def undefined(self) -> dict[str, list[str]]:
        """Metrics without a value of each model that has any, e.g. the correlation of a constant prediction."""
        metrics: dict[str, list[str]] = {}
        for one in self.estimates:
            if one.average == "pooled" and np.isnan(one.mean):
                metrics.setdefault(one.model, []).append(one.metric)
        return metrics


def load_runs(rows: Sequence[BenchRow], folder: Path) -> dict[tuple[str, str, str], list[ModelRuns]]:
    """Read the predictions of finished rows: (dataset, task, split) → models in the order of the rows."""
    groups: dict[tuple[str, str, str], dict[str, list[BenchRow]]] = {}
    for row in rows:
        for split in row.predictions if not row.error else ():
            groups.setdefault((row.dataset, row.task, split), {}).setdefault(row.model, []).append(row)
    runs: dict[tuple[str, str, str], list[ModelRuns]] = {}
    for (dataset, task, split), models in groups.items():
        of_split = runs[dataset, task, split] = []
        for model, finished in models.items():
            predictions = {row.seed: load_predictions(folder / row.predictions[split]) for row in finished}
            of_split.append(ModelRuns(model, finished[0].modes, predictions))
    return runs


def split_statistics(
    dataset: str, task: str, split: str, monitor: str, models: Sequence[ModelRuns], *, resamples: int = RESAMPLES
) -> SplitStatistics:
    """Compute the statistics of models on one tested split."""
    estimates = [one for model in models for one in _estimates(model, resamples)]
    paired = [model for model in models if same_rows(model.first, models[0].first)]
    names = [model.model for model in paired]
    values: dict[str, np.ndarray] = {}
    pairs: list[PairTest] = []
    for metric in models[0].metrics:
        values[metric.name] = np.stack([model.cluster_values(metric) for model in paired])  # (M, C)
        pairs += pair_tests(metric.name, names, values[metric.name], resamples)
    mode = models[0].modes.get(monitor, "max")
    ranks = compare_ranks(names, values[monitor], mode=mode) if monitor in values else None
    left_out = tuple(model.model for model in models if model not in paired)
    return SplitStatistics(
        dataset, task, split, monitor, tuple(models), tuple(estimates), tuple(pairs), ranks, left_out
    )


def same_rows(run: RunPredictions, other: RunPredictions) -> bool:
    """Return True if two runs are of the same proteins, in the same order, with the same labels."""
    y, other_y = run.rows.y, other.rows.y
    if run.names != other.names or y.shape != other_y.shape:
        return False
    return np.array_equal(y.numpy(), other_y.numpy(), equal_nan=y.is_floating_point())


def _estimates(model: ModelRuns, resamples: int) -> Iterator[ScoreEstimate]:
    """Yield pooled values and means over proteins or clusters of every metric, and the calibration error."""
    runs = list(model.runs.values())
    count, clusters = len(model.first.names), model.first.cluster_of_protein
    average = "clusters" if model.first.has_clusters else "proteins"
    for metric in model.metrics:
        samples = model.pooled_samples(metric, resamples)
        yield _estimate(model, metric.name, "pooled", metric.mode, model.pooled(metric), samples, count)
        values = [cluster_means(protein_values(run, metric), clusters) for run in runs]
        if (defined := int((~np.isnan(values[0])).sum())) > 1:
            samples = resample_mean(np.mean(values, axis=0), resamples=resamples)
            means = [float(np.nanmean(one)) for one in values]
            yield _estimate(model, metric.name, average, metric.mode, means, samples, defined)
    bins = _bins(model)
    if bins is not None:
        times = draw_copies(clusters, resamples=resamples)
        samples = np.mean([run.error(times) for run in bins], axis=0)
        errors = [float(run.error()[0]) for run in bins]
        yield _estimate(model, CALIBRATION_ERROR, "pooled", "min", errors, samples, count)


def _bins(model: ModelRuns) -> list[ReliabilityBins] | None:
    """Return the binned probabilities of each seed; None if predictions are not probabilities of labels."""
    bins = [bin_probabilities(run) for run in model.runs.values()]
    defined = [run for run in bins if run is not None]
    return defined if len(defined) == len(bins) else None


def _estimate(
    model: ModelRuns, metric: str, average: str, mode: str, values: list[float], samples: np.ndarray, proteins: int
) -> ScoreEstimate:
    has_sd = len(values) > 1 and not np.isnan(values).any()  # stdev raises for NaN
    sd = stdev(values) if has_sd else np.nan
    return ScoreEstimate(model.model, metric, average, mode, fmean(values), sd, percentile_interval(samples), proteins)


def pair_tests(metric: str, models: Sequence[str], values: np.ndarray, resamples: int) -> list[PairTest]:
    """Test all pairs of M models in one metric on the same P proteins; ``values`` is ``(M, P)``."""
    pairs = np.array(list(combinations(range(len(models)), 2)), dtype=int).reshape(-1, 2)
    differences = values[pairs[:, 0]] - values[pairs[:, 1]]
    defined = (~np.isnan(differences)).sum(1)
    pairs, differences, defined = (x[defined > 1] for x in (pairs, differences, defined))
    p_values = sign_permutation_tests(differences)
    return [
        PairTest(
            metric,
            models[a],
            models[b],
            float(np.nanmean(difference)),
            percentile_interval(resample_mean(difference, resamples=resamples)),
            p,
            adjusted,
            int(proteins),
        )
        for (a, b), difference, p, adjusted, proteins in zip(
            pairs, differences, p_values, holm(p_values), defined, strict=True
        )
    ]


# --- groups of proteins: by length, number of chains and resolution --------------------------------------------------


_LENGTHS = ((150, "up to 150 residues"), (300, "151 to 300 residues"), (500, "301 to 500 residues"))
_RESOLUTIONS = ((2.0, "up to 2.0 Å"), (3.0, "2.0 to 3.0 Å"))


@dataclass(frozen=True)
class GroupScore:
    """The monitored metric of a model on a group of proteins.

    ``by``: "length", "chains" or "resolution". ``group``: e.g. "151 to 300 residues". ``score``: pooled over the rows
    of the group, mean over seeds; NaN if undefined. ``proteins``: proteins of the group.
    """

    by: str
    group: str
    model: str
    score: float
    proteins: int


def break_down(statistics: SplitStatistics, resolutions: Mapping[str, float]) -> list[GroupScore]:
    """Compute the monitored metric of each model in groups of proteins, unless all are in one group."""
    metric = registered_metric(statistics.monitor)
    if metric is None:
        return []
    return [one for model in statistics.models for one in _of_model(model, metric, resolutions)]


def _of_model(model: ModelRuns, metric: Metric, resolutions: Mapping[str, float]) -> list[GroupScore]:
    groups = []
    for by, labels in _groups(model.first, resolutions).items():
        if len(set(labels)) < 2:
            continue
        for group in sorted(set(labels), key=lambda label: label[0]):
            members = [i for i, label in enumerate(labels) if label == group]
            scores = [_score(run, metric, members) for run in model.runs.values()]
            groups.append(GroupScore(by, group[1], model.model, float(np.mean(scores)), len(members)))
    return groups


def _groups(run: RunPredictions, resolutions: Mapping[str, float]) -> dict[str, list[tuple[int, str]]]:
    """Return the group of each protein, as (order, name)."""
    groups = {}
    if (chains := run.chain_counts) is not None:  # rows are residues
        groups["length"] = [_limit(n, _LENGTHS, "more than 500 residues") for n in run.lengths.tolist()]
        names = {1: "1 chain", 2: "2 chains"}
        groups["chains"] = [(min(n, 3), names.get(n, "3 or more chains")) for n in chains.tolist()]
    known = [resolutions.get(name) for name in run.names]
    groups["resolution"] = [
        (9, "unknown") if value is None else _limit(value, _RESOLUTIONS, "more than 3.0 Å") for value in known
    ]
    return groups


def _limit(value: float, limits: tuple[tuple[float, str], ...], last: str) -> tuple[int, str]:
    for order, (limit, name) in enumerate(limits):
        if value <= limit:
            return order, name
    return len(limits), last


def _score(run: RunPredictions, metric: Metric, members: list[int]) -> float:
    """Compute a metric on the rows of some proteins."""
    rows = torch.nonzero(torch.isin(run.rows.protein_of_rows, torch.tensor(members))).flatten()
    one = run.rows.take(rows, torch.unique_consecutive(run.rows.protein_of_rows[rows], return_inverse=True)[1])
    return metric(one) if bool(known_labels(one.y).any()) else np.nan
