"""Predictions of a benchmark run on its tested splits, in one compressed file of arrays per split."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from protgraph.errors import DatasetError
from protgraph.file_io import atomic_write

if TYPE_CHECKING:
    from protgraph.bench.rows import BenchJob
    from protgraph.evaluation.bootstrap import SplitScores
    from protgraph.task.predictions import SplitPredictions

__all__ = ["RunPredictions", "load_predictions", "save_predictions"]

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
