"""Quality of a model without its native structure: lDDT of each residue, and scores of whole models.

The score of a model is the mean over its residues. Metrics over proteins compare these means, of residues with a known
label.
"""

from __future__ import annotations

import torch
from torch import Tensor

from protgraph.data.datasets.target import Target
from protgraph.task.input_masking import InputMasking
from protgraph.task.losses import known_labels, squared_error
from protgraph.task.metrics import (
    as_metric,
    mae,
    mean_ranks,
    pearson_correlation,
    pearson_overall,
    rmse,
)
from protgraph.task.predictions import SplitPredictions
from protgraph.task.task import Task

__all__ = ["MODEL_QUALITY", "pearson_of_means", "rmse_of_means", "spearman_of_means"]
ENTRY_POINTS = {
    "protgraph.metrics": {
        "pearson_of_means": "pearson_of_means",
        "rmse_of_means": "rmse_of_means",
        "spearman_of_means": "spearman_of_means",
    },
    "protgraph.tasks": {"model_quality": "MODEL_QUALITY"},
}


@as_metric("max")
def pearson_of_means(o: SplitPredictions) -> float:
    """Pearson correlation of the means over the residues of each protein."""
    return pearson_correlation(*_means(o))


@as_metric("max")
def spearman_of_means(o: SplitPredictions) -> float:
    """Spearman rank correlation of the means over the residues of each protein."""
    return pearson_correlation(*map(mean_ranks, _means(o)))


@as_metric("min")
def rmse_of_means(o: SplitPredictions) -> float:
    """Root of the mean squared error of the means over the residues of each protein."""
    predicted, true = _means(o)
    return float((predicted - true).square().mean().sqrt())


def _means(o: SplitPredictions) -> tuple[Tensor, Tensor]:
    """Return the mean prediction and label of each protein with a known label, ``(P,)`` float64 each."""
    known = known_labels(o.y[:, 0])
    protein = torch.zeros(len(o.y), dtype=torch.int64) if o.protein is None else o.protein
    place, count = protein[known].unique(return_inverse=True, return_counts=True)[1:]
    predicted, true = (torch.bincount(place, values[known, 0].double()) / count for values in (o.logits, o.y))
    return predicted, true


MODEL_QUALITY = Task(
    "model_quality",
    Target("model_quality", "node", "regression", 1, ("model_quality",)),
    squared_error,
    (rmse, mae, pearson_overall, pearson_of_means, spearman_of_means, rmse_of_means),
    "rmse",
    InputMasking(hidden={"b_factor"}),
    doc="lDDT of the CA atom of each residue of a predicted structure (0 to 1; Mariani et al. 2013), without the "
    "native structure. The B factor, where predicted structures have their confidence, is hidden.",
)
