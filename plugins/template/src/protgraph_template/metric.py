"""Metric: a function of the predictions of a whole split."""

from __future__ import annotations

import torch

from protgraph.task import SplitPredictions, as_metric

__all__ = ["template_recall"]


@as_metric("max")
def template_recall(o: SplitPredictions) -> float:
    """Mean over classes of the fraction of their residues that are predicted."""
    right = o.logits.argmax(1) == o.y
    return float(torch.stack([right[o.y == c].float().mean() for c in o.y[o.y >= 0].unique()]).mean())
