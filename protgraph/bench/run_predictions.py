"""Predictions of a benchmark run on its tested splits, a compressed file of arrays per split, and their metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np
import torch

from protgraph.errors import DatasetError
from protgraph.evaluation.bootstrap import RESAMPLES
from protgraph.evaluation.calibration import BINS, ReliabilityBins, label_events
from protgraph.evaluation.weighted_metrics import ratio, weighted_metric
from protgraph.file_io import atomic_write
from protgraph.task.losses import known_labels
from protgraph.task.metrics import Metric

if TYPE_CHECKING:
    from protgraph.bench.rows import BenchJob
    from protgraph.evaluation.bootstrap import SplitScores
    from protgraph.task.predictions import SplitPredictions
    from protgraph.task.task import Task

__all__ = [
    "RunPredictions",
    "bin_probabilities",
    "cluster_means",
    "describe_test_split",
    "load_predictions",
    "protein_values",
    "resample_mean",
    "save_predictions",
    "values_by_protein",
]

#: Folder of the files, in the folder of the benchmark.
_FOLDER = "predictions"


@dataclass(frozen=True, eq=False)
class RunPredictions:
    """Predictions and labels of the residues, or proteins, of a tested split.

    ``names``: P proteins. ``rows``: sorted by protein; ``protein`` is the index into ``names``. ``clusters``: cluster
    of each protein; empty if each one is a cluster.
    """

    names: tuple[str, ...]
    rows: SplitPredictions
    clusters: tuple[int, ...] = ()

    @classmethod
    def of(cls, names: Sequence[str], predictions: SplitPredictions, clusters: Sequence[int] = ()) -> RunPredictions:
        """Sort the rows by protein; within a protein they keep the order of its residues."""
        order = predictions.protein_of_rows.argsort(stable=True)
        arrays = {key: getattr(predictions, key)[order] for key in ("logits", "y", "protein")}
        chain, threshold = predictions.chain, predictions.threshold
        if threshold is not None and threshold.dim() == 2:
            threshold = threshold[order]
        chain = None if chain is None else chain[order]
        rows = replace(predictions, chain=chain, threshold=threshold, pos=None, **arrays)
        return cls(tuple(names), rows, tuple(clusters))

    @property
    def cluster_of_protein(self) -> tuple[int, ...]:
        """Cluster of each protein ``(P,)``; numbers of proteins if each one is a cluster."""
        return self.clusters or tuple(range(len(self.names)))

    @property
    def has_clusters(self) -> bool:
        """True if two proteins are in one cluster."""
        return len(set(self.clusters)) < len(self.clusters)

    @property
    def lengths(self) -> np.ndarray:
        """Rows of each protein ``(P,)``: residues, for labels of residues."""
        return np.bincount(self.rows.protein_of_rows.numpy(), minlength=len(self.names))

    @property
    def chain_counts(self) -> np.ndarray | None:
        """Chains of each protein ``(P,)``; None if rows are not residues."""
        if self.rows.chain is None:
            return None
        pairs = np.unique(np.stack([self.rows.protein_of_rows.numpy(), self.rows.chain.numpy()]), axis=1)
        return np.bincount(pairs[0], minlength=len(self.names))

    def save(self, path: Path) -> Path:
        """Write the arrays, and replace an existing file."""
        arrays = {key: getattr(self.rows, key) for key in ("logits", "y", "protein", "chain", "threshold", "scale")}
        arrays = {key: value.numpy() for key, value in arrays.items() if value is not None}
        with atomic_write(path) as temporary, temporary.open("wb") as file:
            clusters = np.array(self.clusters, dtype=np.int64)
            np.savez_compressed(file, names=np.array(self.names, dtype=np.str_), clusters=clusters, **arrays)
        return path


def load_predictions(path: Path) -> RunPredictions:
    """Read a file of :meth:`RunPredictions.save`."""
    import torch

    from protgraph.task.predictions import SplitPredictions

    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
        names, clusters = tuple(arrays.pop("names").tolist()), tuple(arrays.pop("clusters", np.zeros(0)).tolist())
        tensors: dict[str, Any] = {key: torch.from_numpy(value) for key, value in arrays.items()}
        rows = SplitPredictions(**tensors)
    except (OSError, ValueError, KeyError, TypeError, BadZipFile) as e:
        raise DatasetError(
            f"predictions not readable: {str(path)!r} ({e}). Run the benchmark again to write the file."
        ) from e
    return RunPredictions(names, rows, clusters)


def save_predictions(scores: Mapping[str, SplitScores], job: BenchJob) -> dict[str, str]:
    """Write the predictions of each tested split; return the file of each split, relative to the folder.

    Predictions of pairs of residues and of vectors are not written: there are too many of the former, and the latter
    have no metric per residue.
    """
    files = {}
    for split, split_scores in scores.items():
        rows = split_scores.predictions
        if not job.out or rows is None or rows.pairs is not None or rows.y.dim() == 3:
            continue
        name = f"{_FOLDER}/{job.key}_{split.replace('/', '_')}.npz"
        RunPredictions.of(split_scores.names, rows, split_scores.clusters).save(Path(job.out) / name)
        files[split] = name
    return files


# --- metrics of single proteins, and calibration ---------------------------------------------------------------------


def protein_values(predictions: RunPredictions, metric: Metric) -> np.ndarray:
    """Return the metric of each protein of a run, ``(P,)``; see :func:`values_by_protein`."""
    return values_by_protein(predictions.rows, len(predictions.names), metric)


def values_by_protein(rows: SplitPredictions, count: int, metric: Metric) -> np.ndarray:
    """Compute a metric on the rows of each protein.

    Returns ``(P,)`` float64; NaN for a protein without a known label, or where the metric is undefined, e.g. the AUPRC
    of a protein without positives.
    """
    weighted = weighted_metric(metric)
    protein = rows.protein_of_rows
    if weighted is not None:
        return weighted(rows, protein, np.eye(count))
    values = np.full(count, np.nan)
    lengths = torch.bincount(protein, minlength=count).tolist()
    for i, members in enumerate(protein.argsort(stable=True).split(lengths)):
        one = rows.take(members, torch.zeros_like(members))
        if bool(known_labels(one.y).any()):
            values[i] = metric(one)
    return values


def cluster_means(values: np.ndarray, clusters: Sequence[int]) -> np.ndarray:
    """Return the mean of the defined values ``(P,)`` of the proteins of each cluster, ``(C,)``."""
    _, cluster = np.unique(np.asarray(clusters), return_inverse=True)
    total = np.bincount(cluster, np.nan_to_num(values))
    return ratio(total, np.bincount(cluster, ~np.isnan(values)))


def describe_test_split(scores: SplitScores, task: Task) -> dict[str, Any]:
    """Return the fields of a row that describe the test proteins, and the monitored metric of each."""
    monitor = next(metric for metric in task.metrics if metric.name == task.monitor)
    fields: dict[str, Any] = {
        "test_proteins": scores.size.proteins,
        "test_with_positives": scores.size.with_positives,
    }
    if scores.predictions is not None:
        values = values_by_protein(scores.predictions, len(scores.names), monitor)
        fields |= {"protein_scores": tuple(values.tolist()), "test_set": scores.test_set}
    return fields


def resample_mean(values: np.ndarray, *, resamples: int = RESAMPLES, seed: int = 0) -> np.ndarray:
    """Compute the mean of the defined values of resampled proteins, ``(resamples,)``.

    The samples are those of :func:`protgraph.evaluation.bootstrap.bootstrap_scores` for the same number of proteins.
    """
    count = len(values)
    drawn = np.random.default_rng(seed).integers(0, count, (resamples, count))
    chosen = values[drawn]
    return ratio(np.nansum(chosen, 1), (~np.isnan(chosen)).sum(1))


def bin_probabilities(predictions: RunPredictions, *, bins: int = BINS) -> ReliabilityBins | None:
    """Sort probabilities into bins for each protein; None if predictions are not probabilities of labels.

    All labels of a yes/no task with several are counted together.
    """
    rows = predictions.rows
    is_class = not rows.y.is_floating_point()
    if not is_class and not rows.is_binary:
        return None
    logits = rows.logits.double()
    events = label_events(logits.softmax(1) if is_class else logits.sigmoid(), rows)
    return events.bins(rows.protein_of_rows.numpy()[events.row], len(predictions.names), bins=bins)
