"""Predictions that a checkpoint stores: computed again, they show whether an installation gives the same numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from protgraph import registry
from protgraph.argument_types import check_arguments
from protgraph.checkpoint.checkpoint_file import Checkpoint, as_checkpoint
from protgraph.errors import CheckpointError
from protgraph.inference.prediction import predict

__all__ = ["ProteinDifference", "Verification", "verify_model", "with_stored_predictions"]

#: Entries of ``pdb_core``, which every installation has: eight folds, a dimer, and an antibody with a ligand.
ENTRIES = ("1crn", "1vii", "1ubq", "1y0m", "1a8o", "1lcd", "1bta", "1ahs", "2q2k", "1ncw")
#: Largest allowed difference, relative to the largest stored number of a protein, at least 1. Other processors and
#: other versions of torch differ by some 1e-6.
TOLERANCE = 1e-4


@dataclass(frozen=True)
class ProteinDifference:
    """Largest difference between the stored and the present predictions of one protein; infinite without a prediction.

    ``tolerance``: the largest allowed difference.
    """

    protein: str
    numbers: int
    difference: float
    tolerance: float

    @property
    def is_equal(self) -> bool:
        """True if the difference is allowed."""
        return self.difference <= self.tolerance


@dataclass(frozen=True)
class Verification:
    """Comparison of all stored predictions of a model."""

    proteins: tuple[ProteinDifference, ...]
    version: str  # of protgraph, which stored them

    @property
    def is_equal(self) -> bool:
        """True if all proteins are equal within the tolerance."""
        return all(protein.is_equal for protein in self.proteins)


def with_stored_predictions(checkpoint: Checkpoint) -> Checkpoint:
    """Return the checkpoint with its predictions for ten entries of ``pdb_core``, those that the model can read.

    Nothing is stored if the model reads what the entries do not have (alignments, mutations, graphs of the user), or if
    ``pdb_core`` is not installed.
    """
    return replace(checkpoint, stored_predictions=_predictions(checkpoint, _entry_files()))


@check_arguments("checkpoint")
def verify_model(checkpoint: str | Path | Checkpoint) -> Verification:
    """Compute the stored predictions of a model again, and compare.

    Parameters
    ----------
    checkpoint : str, Path or Checkpoint
        See :func:`protgraph.inference.predict`.

    Raises
    ------
    CheckpointError
        The checkpoint stores no predictions, or the dataset ``pdb_core`` is not installed.
    """
    checkpoint = as_checkpoint(checkpoint)
    stored = checkpoint.stored_predictions
    if not stored:
        raise CheckpointError(
            "verify: the checkpoint stores no predictions. Its model reads what entries of pdb_core do not have "
            "(alignments, mutations, your graphs), or its training was interrupted, or it was written without pdb_core."
        )
    files = {name: path for name, path in _entry_files().items() if name in stored}
    if not files:
        raise CheckpointError("verify: the dataset 'pdb_core' is not installed, whose entries are predicted.")
    now = _predictions(checkpoint, files)
    differences = tuple(_compare(name, values, now.get(name)) for name, values in stored.items())
    return Verification(differences, checkpoint.version)


def _entry_files() -> dict[str, Path]:
    """Return the files of the entries by name; empty if the dataset is not installed."""
    if "pdb_core" not in registry.datasets:
        return {}
    dataset = registry.datasets.create("pdb_core")
    files = {example.path.stem: example.path for example in dataset.examples("inverse_folding")}
    return {name: files[name] for name in ENTRIES}


def _predictions(checkpoint: Checkpoint, files: Mapping[str, Path]) -> dict[str, Tensor]:
    """Return the predicted numbers of each entry, ``(rows, columns)`` float32, without those that fail."""
    reads_mutations = checkpoint.model.target.head_name == "mutation"
    reads_graphs = bool(checkpoint.model.plan.given)
    if not files or reads_mutations or reads_graphs:
        return {}
    rows_of_entries: dict[str, list[list[float]]] = {}
    for row in predict(checkpoint, list(files.values()), device="cpu").rows:
        numbers = [value for value in row if isinstance(value, float)]
        rows_of_entries.setdefault(Path(str(row[0])).stem, []).append(numbers)
    return {name: torch.tensor(rows, dtype=torch.float32) for name, rows in rows_of_entries.items()}


def _compare(protein: str, stored: Tensor, now: Tensor | None) -> ProteinDifference:
    tolerance = TOLERANCE * max(1.0, float(stored.abs().max()))
    if now is None or now.shape != stored.shape:
        return ProteinDifference(protein, stored.numel(), float("inf"), tolerance)
    difference = float((now - stored).abs().nan_to_num(float("inf")).max())
    return ProteinDifference(protein, stored.numel(), difference, tolerance)
