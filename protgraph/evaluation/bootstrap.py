"""Bootstrap over proteins, or clusters of them: intervals of a metric, and of the difference of two models."""

# Not scipy.stats.bootstrap: NaN if one resample is undefined, and 100 times slower (SciPy 1.17.1, 2026-11-22).

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from protgraph.evaluation.weighted_metrics import ratio, weighted_metric
from protgraph.task.contact_prediction import PRECISIONS
from protgraph.task.losses import known_labels
from protgraph.task.metrics import Metric, registered_metric
from protgraph.task.predictions import SplitPredictions
from protgraph.wording import count_noun

__all__ = [
    "RESAMPLES",
    "BootstrapInterval",
    "SplitSize",
    "SplitScores",
    "bootstrap_difference",
    "bootstrap_scores",
    "cluster_scores",
    "cluster_weights",
    "count_split",
    "draw_copies",
    "percentile_interval",
    "resample_test_split",
]

RESAMPLES = 1000
_LEVEL = 0.95
#: Metrics computed from the values of chains, or of proteins. The mean is over those that have a value.
_MEANS_OVER_CHAINS = frozenset(
    {"lddt", "lddt_ca", "pearson", "perplexity_mean", "recovery_mean", "rmsd", "rmsd_superposed", "tm_score"}
)
_MEANS_OVER_PROTEINS = frozenset({"dice_mean", *(metric.name for metric in PRECISIONS)})
_MEDIANS_OVER_CHAINS = frozenset({"recovery_median"})
_SUMS_OVER_CHAINS = frozenset({"pearson_undefined"})
_OVER_CHAINS = _MEANS_OVER_CHAINS | _MEDIANS_OVER_CHAINS | _SUMS_OVER_CHAINS
FEW_PROTEINS, FEW_POSITIVE = 10, 5
"""A test set with fewer proteins, or fewer proteins with positives, is too small to conclude from."""
MIN_PROTEINS = 2
"""Least number of proteins with an interval."""


@dataclass(frozen=True)
class BootstrapInterval:
    """Percentile interval of a metric over resampled proteins."""

    low: float  # low and high: limits of the 95 % interval; NaN if fewer than half of the resamples have a value
    high: float
    undefined: int = 0  # resamples without a value, e.g. without positives; they are left out

    def text(self, digits: int = 3) -> str:
        """Format as "0.412 to 0.655"."""
        if np.isnan(self.low):
            return "undefined"
        largest = max(abs(self.low), abs(self.high))
        form = "g" if 0 < largest < 10.0**-digits else "f"  # labels may have a small unit
        return f"{self.low:.{digits}{form}} to {self.high:.{digits}{form}}"


@dataclass(frozen=True, eq=False)
class SplitScores:
    """The monitored metric of a model on a test split, for resampled proteins."""

    metric: str
    scores: np.ndarray  # ``(R,)``, result of :func:`bootstrap_scores`
    size: SplitSize
    test_set: str  # digest of the names of the proteins: scores of equal digests are of the same samples
    # names of the proteins, in the order of ``predictions.protein``
    names: tuple[str, ...] = field(default=(), repr=False)
    # cluster of each of these proteins, which the samples draw; empty if each one is a cluster
    clusters: tuple[int, ...] = field(default=(), repr=False)
    # the predictions of all proteins, with the threshold chosen on validation
    predictions: SplitPredictions | None = field(default=None, repr=False)

    def summary(self, split: str) -> list[str]:
        """Return lines of text: the interval and, for a small split, a warning."""
        if self.size.has_no_interval:
            return [f"{split} {self.metric}: no interval over {self.size.text()}; it needs at least {MIN_PROTEINS}"]
        interval = percentile_interval(self.scores).text(4)
        lines = [f"{split} {self.metric}: 95 % interval {interval}, over {self.size.text()}"]
        return [*lines, *([self.size.warning()] if self.size.is_small else [])]


@dataclass(frozen=True)
class SplitSize:
    """Number of proteins with a known label in a split."""

    proteins: int
    # of these, proteins with a positive label; None if the labels are not yes/no labels
    with_positives: int | None = None
    # clusters of these proteins; None if each one is a cluster
    clusters: int | None = None

    @property
    def units(self) -> int:
        """Number of independent samples: clusters, or proteins."""
        return self.proteins if self.clusters is None else self.clusters

    @property
    def has_no_interval(self) -> bool:
        """True for a single protein or cluster: resamples do not differ. The size of a set may be unknown, 0."""
        return 0 < self.units < MIN_PROTEINS

    @property
    def is_small(self) -> bool:
        """True if it is too small to conclude from: fewer than 10 proteins, or fewer than 5 with positives."""
        few = self.with_positives is not None and self.with_positives < FEW_POSITIVE
        return self.units < FEW_PROTEINS or few

    def warning(self) -> str:
        """Return a sentence for a set that is too small."""
        least = str(FEW_PROTEINS) if self.with_positives is None else f"{FEW_PROTEINS}, {FEW_POSITIVE} with positives"
        return f"warning: {self.text()}: too few to conclude from (at least {least})"

    def text(self) -> str:
        """Format as "11 proteins in 5 clusters, 3 with positives"."""
        clusters = "" if self.clusters is None else f" in {count_noun(self.clusters, 'cluster')}"
        positives = "" if self.with_positives is None else f", {self.with_positives} with positives"
        return count_noun(self.proteins, "protein") + clusters + positives


def resample_test_split(
    predictions: SplitPredictions, metric: Metric, names: Sequence[str], clusters: Sequence[int] = ()
) -> SplitScores:
    """Return the scores of a metric on resampled clusters of a test split.

    ``names`` and ``clusters`` are those of its proteins; without clusters, proteins are resampled.
    """
    digest = hashlib.sha256("\n".join(names).encode()).hexdigest()[:12]
    scores = bootstrap_scores(predictions, metric, clusters=clusters)
    size = count_split(predictions, clusters)
    return SplitScores(metric.name, scores, size, digest, tuple(names), tuple(clusters), predictions)


def count_split(predictions: SplitPredictions, clusters: Sequence[int] = ()) -> SplitSize:
    """Count the proteins of a split that have a known label, their clusters, and those with a positive label."""
    known = known_labels(predictions.y)
    known = known if known.dim() == 1 else known.flatten(1).any(1)
    proteins = predictions.protein_of_rows[known].unique().tolist()
    of_clusters = len({clusters[number] for number in proteins}) if clusters else len(proteins)
    count = of_clusters if of_clusters < len(proteins) else None
    if predictions.y.dim() != 2 or not predictions.is_binary:
        return SplitSize(len(proteins), clusters=count)
    positive = predictions.protein_of_rows[(predictions.y == 1).any(1)].unique()
    return SplitSize(len(proteins), len(positive), count)


def draw_copies(clusters: Sequence[int], *, resamples: int = RESAMPLES, seed: int = 0) -> np.ndarray:
    """Draw clusters with replacement; return the copies of each protein in each sample.

    ``clusters``: cluster of each of P proteins. Returns ``(resamples, P)`` int64.
    """
    names, cluster_of_protein = np.unique(np.asarray(clusters, dtype=np.int64), return_inverse=True)
    drawn = np.random.default_rng(seed).integers(0, len(names), (resamples, len(names)))
    copies_of_cluster = np.stack([np.bincount(row, minlength=len(names)) for row in drawn])
    return copies_of_cluster[:, cluster_of_protein]


def bootstrap_scores(
    predictions: SplitPredictions,
    metric: Metric,
    *,
    clusters: Sequence[int] = (),
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> np.ndarray:
    """Compute a metric on resampled proteins.

    ``clusters``: cluster of each protein number of the predictions. Clusters are drawn, with all of their proteins;
    without them, proteins. Returns ``(resamples,)`` float64, NaN where the metric is undefined, and for fewer than two
    clusters.
    """
    numbers, protein_of_row = predictions.protein_of_rows.unique(return_inverse=True)
    count = len(numbers)
    units = [clusters[number] for number in numbers.tolist()] if clusters else range(count)
    if len(set(units)) < MIN_PROTEINS:
        return np.full(resamples, np.nan)
    times = draw_copies(units, resamples=resamples, seed=seed)  # (resamples, P)
    num_rows = protein_of_row.bincount(minlength=count).tolist()
    rows = protein_of_row.argsort(stable=True).split(num_rows)  # of each protein
    is_known = registered_metric(metric.name) is metric
    weighted = weighted_metric(metric)
    if weighted is not None and predictions.y.dim() < 3:
        return weighted(predictions, protein_of_row, times)
    if is_known and metric.name in _OVER_CHAINS | _MEANS_OVER_PROTEINS:
        return _from_values(predictions, metric, rows, times)
    scores = []
    for copies in times:
        sample = np.repeat(np.arange(count), copies).tolist()
        scores.append(_score(predictions, metric, [rows[protein] for protein in sample]))
    return np.array(scores)


def cluster_weights(clusters: Sequence[int]) -> np.ndarray:
    """Return 1 / (number of proteins in its cluster) for each of P proteins, ``(P,)`` float64.

    Examples
    --------
    >>> cluster_weights([0, 1, 1]).tolist()
    [1.0, 0.5, 0.5]
    """
    _, cluster, proteins = np.unique(np.asarray(clusters), return_inverse=True, return_counts=True)
    return 1 / proteins[cluster]


def cluster_scores(
    predictions: SplitPredictions,
    metric: Metric,
    *,
    clusters: Sequence[int],
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> np.ndarray | None:
    """Compute a metric in which each cluster has one vote, on all clusters and on resampled ones.

    A row of a protein counts as 1 / (number of proteins in its cluster), so that copies of a protein count once.

    ``clusters``: cluster of each protein number of the predictions. Returns ``(1 + resamples,)`` float64, that of all
    clusters first; None for metrics that do not take weights.
    """
    weighted = weighted_metric(metric)
    if weighted is None or predictions.y.dim() >= 3:
        return None
    numbers, protein_of_row = predictions.protein_of_rows.unique(return_inverse=True)
    units = [clusters[number] for number in numbers.tolist()]  # of each of P proteins
    copies = draw_copies(units, resamples=resamples, seed=seed)  # (resamples, P)
    times = np.concatenate([np.ones((1, len(units))), copies]) * cluster_weights(units)
    return weighted(predictions, protein_of_row, times)


def _from_values(
    predictions: SplitPredictions, metric: Metric, rows: Sequence[torch.Tensor], times: np.ndarray
) -> np.ndarray:
    """Return the scores ``(R,)`` of a metric that is a mean, a median or a sum over chains or proteins.

    ``rows`` are those of each of the P proteins, and ``times (R, P)`` their copies in each sample.
    """
    values, owner = [], []
    for number, own in enumerate(rows):
        chains = [own[part] for part in _take(predictions, [own]).chains()] if metric.name in _OVER_CHAINS else [own]
        values += [_score(predictions, metric, [part]) for part in chains]
        owner += [number] * len(chains)
    value, times = np.array(values), times[:, owner]
    if metric.name in _MEDIANS_OVER_CHAINS:
        samples = (np.repeat(value, row) for row in times)
        return np.array([np.median(sample) if len(sample) else np.nan for sample in samples])
    total = times @ np.nan_to_num(value)
    return total if metric.name in _SUMS_OVER_CHAINS else ratio(total, times @ ~np.isnan(value))


def bootstrap_difference(
    predictions: SplitPredictions,
    other: SplitPredictions,
    metric: Metric,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> np.ndarray:
    """Compute the difference of a metric of two models on the same samples of the proteins that both have.

    Returns ``(resamples,)`` float64, ``predictions`` minus ``other``.
    """
    common = np.intersect1d(predictions.protein_of_rows.unique().numpy(), other.protein_of_rows.unique().numpy())
    scores = bootstrap_scores(_restrict(predictions, common), metric, resamples=resamples, seed=seed)
    other_scores = bootstrap_scores(_restrict(other, common), metric, resamples=resamples, seed=seed)
    return scores - other_scores


def _restrict(predictions: SplitPredictions, proteins: np.ndarray) -> SplitPredictions:
    """Return the rows of these proteins, in ascending order of the protein."""
    protein = predictions.protein_of_rows
    order = protein.argsort(stable=True)
    rows = order[torch.isin(protein[order], torch.from_numpy(proteins))]
    return predictions.take(rows, torch.searchsorted(torch.from_numpy(proteins), protein[rows]))


def percentile_interval(scores: np.ndarray) -> BootstrapInterval:
    """Return the central 95 % of the defined ``scores (R,)`` of :func:`bootstrap_scores`."""
    defined = scores[~np.isnan(scores)]
    undefined = len(scores) - len(defined)
    if len(defined) < max(1, len(scores) / 2):
        return BootstrapInterval(np.nan, np.nan, undefined)
    low, high = np.quantile(defined, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return BootstrapInterval(float(low), float(high), undefined)


def _score(predictions: SplitPredictions, metric: Metric, sample: list[torch.Tensor]) -> float:
    """Compute a metric on the rows of a sample of proteins."""
    one = _take(predictions, sample)
    return float(metric(one)) if bool(known_labels(one.y).any()) else np.nan


def _take(predictions: SplitPredictions, sample: list[torch.Tensor]) -> SplitPredictions:
    """Return the rows of a sample of proteins, each a protein of its own."""
    copy = torch.repeat_interleave(torch.arange(len(sample)), torch.tensor([len(own) for own in sample]))
    return predictions.take(torch.cat(sample), copy)
