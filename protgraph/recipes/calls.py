"""Calls that a trained model supports, with their precision and recall on each split, for its card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from protgraph.checkpoint.checkpoint_file import Checkpoint
from protgraph.checkpoint.trained_model import CallCounts, CallRule
from protgraph.inference.prediction import probabilities
from protgraph.inference.prediction_table import target_names
from protgraph.inference.sites import has_sites
from protgraph.task.metrics import best_threshold
from protgraph.task.predictions import SplitPredictions

__all__ = ["count_calls", "find_calls", "mutation_calls", "site_calls"]

_LARGE = 1.0  # kcal/mol, a measured ΔΔG that matters: twice the difference of measurements of one mutation
_HALF = 0.5


def site_calls(checkpoint: Checkpoint, predictions: Mapping[str, SplitPredictions], truth: str) -> list[CallRule]:
    """Return the rule by which residues are called, for a model with one yes/no label per residue; else none.

    The threshold of the checkpoint, which validation chose, is written as a calibrated probability.

    ``predictions``: uncalibrated predictions of each split. ``truth``: what makes a call right, in words; "" for a
    sentence with the label.
    """
    target, threshold, calibration = checkpoint.model.target, checkpoint.threshold, checkpoint.calibration
    if not has_sites(target) or threshold is None or "val" not in predictions:
        return []
    label = target_names(target)[0]
    logit = threshold[None]  # (1, 1)
    probability = probabilities(logit, target) if calibration is None else calibration.probabilities(logit, target)
    splits = {}
    for split, p in predictions.items():
        logits, y = next(iter(p.columns()))  # of residues with a known label
        splits[split] = count_calls(logits >= threshold[0], y == 1)
    return [
        CallRule(name=label, at_least=float(probability), truth=truth or f"the label {label!r} is 1", splits=splits)
    ]


def mutation_calls(predictions: Mapping[str, SplitPredictions], *, of_binding: bool = False) -> list[CallRule]:
    """Return the rules by which a mutation is called destabilizing, stabilizing or neutral, from ΔΔG in kcal/mol.

    Destabilizing: the threshold with the largest Matthews correlation on validation, for a measured ΔΔG of at least
    1 kcal/mol. Stabilizing: the largest threshold for which at least half of the called variants of validation have a
    measured ΔΔG of 0 or less; nothing is called stabilizing without one. Neutral: between both. The names for binding
    are "weaker", "tighter" and "neutral".

    ``predictions``: predicted and measured ΔΔG of each split, positive = destabilizing.
    """
    unfavorable, favorable = ("weaker", "tighter") if of_binding else ("destabilizing", "stabilizing")
    values = {split: (p.logits[:, 0].double(), p.y[:, 0].double()) for split, p in predictions.items()}
    predicted, measured = values["val"]
    high = float(best_threshold(replace(predictions["val"], y=(predictions["val"].y >= _LARGE).float())))
    low = _largest_supported(predicted, measured <= 0)
    large, small = f"the measured ΔΔG is at least {_LARGE:g} kcal/mol", "the measured ΔΔG is 0 or negative"
    counts = {split: count_calls(p >= high, y >= _LARGE) for split, (p, y) in values.items()}
    rules = [CallRule(name=unfavorable, at_least=high, truth=large, splits=counts)]
    if low is not None and low < high:
        between = f"the measured ΔΔG is positive and below {_LARGE:g} kcal/mol"
        counts = {}
        for split, (p, y) in values.items():
            counts[split] = count_calls((p >= low) & (p < high), (y > 0) & (y < _LARGE))
        rules.append(CallRule(name="neutral", at_least=low, below=high, truth=between, splits=counts))
        counts = {split: count_calls(p < low, y <= 0) for split, (p, y) in values.items()}
        rules.append(CallRule(name=favorable, below=low, truth=small, splits=counts))
    return rules


def _largest_supported(predicted: Tensor, right: Tensor) -> float | None:
    """Return the largest threshold below which at least half of the predictions ``(N,)`` are right, or None."""
    order = predicted.argsort()
    precision = right[order].double().cumsum(0) / torch.arange(1, len(order) + 1)  # of the lowest k predictions
    supported = (precision[:-1] >= _HALF).nonzero().flatten()
    if len(supported) == 0:
        return None
    last = int(supported[-1])
    return float(predicted[order[last : last + 2]].mean())


def find_calls(checkpoint: Checkpoint, predictions: Mapping[str, SplitPredictions], truth: str) -> list[CallRule]:
    """Return the calls that a model supports: of residues, or of mutations; none for other models."""
    target = checkpoint.model.target
    if "val" in predictions and target.head_name == "mutation" and target.unit == "kcal/mol":
        return mutation_calls(predictions, of_binding="binding" in target.name)
    return site_calls(checkpoint, predictions, truth)


def count_calls(called: Tensor, positive: Tensor) -> CallCounts:
    """Count what is called and what should be, two masks of the same shape."""
    return CallCounts(called=int(called.sum()), positives=int(positive.sum()), correct=int((called & positive).sum()))
