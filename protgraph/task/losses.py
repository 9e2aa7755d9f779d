"""Losses and label statistics over known labels. Unknown labels are −1 or NaN; without known labels a loss is 0."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn import functional

from protgraph.data.graph.fields import irreps_columns
from protgraph.ops import Segments

__all__ = [
    "binary_cross_entropy",
    "cross_entropy",
    "huber_error",
    "known_labels",
    "label_prior",
    "label_std",
    "squared_error",
    "label_counts",
]

_UNKNOWN_CLASS = -1


def known_labels(y: Tensor) -> Tensor:
    """Return a mask of known labels ``y (M, …)``, bool of the same shape: not −1 for classes, not NaN for floats."""
    return ~y.isnan() if y.is_floating_point() else y != _UNKNOWN_CLASS


def cross_entropy(logits: Tensor, y: Tensor, *, weight: Tensor | None = None) -> Tensor:
    """Compute the mean of ``-w[y] log softmax(logits)[y]`` over known entries.

    ``logits``: ``(N, C)`` float, unnormalized log-probabilities. ``y``: ``(N,)`` int64 classes; −1 is unknown.
    ``weight``: w, ``(C,)``; None is 1. Returns ``()``, nats.
    """
    weight = None if weight is None else weight.to(logits)
    total = functional.cross_entropy(logits, y, weight=weight, ignore_index=_UNKNOWN_CLASS, reduction="sum")
    return total / known_labels(y).sum().clamp(min=1)


def binary_cross_entropy(logits: Tensor, y: Tensor, *, pos_weight: Tensor | float | None = None) -> Tensor:
    """Compute the mean of ``-w y log σ(logits) - (1 - y) log(1 - σ(logits))`` over known entries.

    ``logits``: ``(N, C)`` float, log-odds. ``y``: ``(N, C)`` float, 0 or 1; NaN is unknown. ``pos_weight``: w, one
    number or ``(C,)``; None is 1. Returns ``()``, nats.
    """
    mask = known_labels(y)
    if pos_weight is not None:
        pos_weight = logits.new_tensor(pos_weight) if isinstance(pos_weight, int | float) else pos_weight.to(logits)
    total = functional.binary_cross_entropy_with_logits(
        logits, y.nan_to_num(), weight=mask.to(logits.dtype), pos_weight=pos_weight, reduction="sum"
    )
    return total / mask.sum().clamp(min=1)


def squared_error(logits: Tensor, y: Tensor, *, scale: Tensor | None = None) -> Tensor:
    """Compute the mean of ``((logits - y) / scale)²`` over known entries.

    ``logits``, ``y``: ``(N, C)`` or ``(N, C, 3)`` float, in the target's unit; NaN in ``y`` is unknown. ``scale``:
    ``(C,)``, in the target's unit, e.g. the standard deviations of the training labels; None is 1. Returns ``()``,
    dimensionless with ``scale``, otherwise in the square of the target's unit.
    """
    mask = known_labels(y)
    error = (logits - y.nan_to_num()) * mask
    if scale is not None:
        error = error / scale.to(error)
    return error.square().sum() / mask.sum().clamp(min=1)


def huber_error(logits: Tensor, y: Tensor) -> Tensor:
    """Compute the mean of ``e²/2`` where ``|e| < 1``, else ``|e| - 1/2``, with ``e = logits - y``, over known entries.

    For labels with outliers whose noise is about one unit, e.g. ΔΔG in kcal/mol. Training uses it in this unit; only
    :func:`squared_error` is divided by the standard deviation of the labels.

    ``logits``, ``y``: ``(N, C)`` float, in the target's unit; NaN in ``y`` is unknown. Returns ``()``.
    """
    mask = known_labels(y)
    total = functional.huber_loss(logits * mask, y.nan_to_num(), reduction="sum")
    return total / mask.sum().clamp(min=1)


def label_counts(labels: Iterable[Tensor], kind: str, size: int, irreps: str = "") -> Tensor | None:
    """Sum the label statistics that :func:`label_prior` and :func:`label_std` need, over proteins.

    ``labels``: labels of each protein, ``(M,)`` classes or ``(M, C)``. Returns float64. Classification: count of each
    class, ``(C,)``. Multilabel: counts of 1 and of 0, ``(2, C)``. Regression: sum, number and sum of squares, ``(3,
    C)``. None for other kinds. ``irreps``: those of the values of a regression. Rotations mix the components of a
    vector and leave only 0 unchanged, so their sums are 0 and their squares those of all components.
    """
    if kind not in ("classification", "multilabel", "regression"):
        return None
    shape = {"classification": (size,), "multilabel": (2, size), "regression": (3, size)}[kind]
    total = torch.zeros(shape, dtype=torch.float64)
    for y in labels:
        if kind == "classification":
            total += torch.bincount(y[known_labels(y)], minlength=size)
        elif kind == "multilabel":
            total += torch.stack([(y == 1).sum(0), (y == 0).sum(0)])
        else:
            total += torch.stack([y.double().nansum(0), known_labels(y).sum(0), y.double().square().nansum(0)])
    return _same_for_all_orientations(total, irreps) if irreps else total


def _same_for_all_orientations(counts: Tensor, irreps: str) -> Tensor:
    """Return the statistics ``(3, C)`` of a regression, those of the components of each irrep made equal."""
    numbers, degrees, parities = torch.tensor(irreps_columns(irreps)).unbind(1)
    irrep = Segments(numbers, int(numbers[-1]) + 1)
    common = irrep.expand(irrep.mean(counts.T)).T  # (3, C)
    common[0] = torch.where((degrees == 0) & (parities == 1), common[0], 0.0)
    return common


def label_std(counts: Tensor) -> Tensor:
    """Compute the standard deviations ``(C,)`` of regression labels from ``counts (3, C)``; 1 if constant."""
    number = counts[1].clamp(min=1)
    mean = counts[0] / number
    variance = counts[2] / number - mean.square()
    # the difference of two float64 sums is accurate to about 1e-12 of each
    return variance.where(variance > 1e-11 * mean.square(), 1.0).sqrt().float()


def label_prior(
    counts: Tensor | None,
    kind: str,
    *,
    pos_weight: Tensor | float | None = None,
    class_weight: Tensor | None = None,
) -> Tensor | None:
    """Compute the constant logits ``(C,)`` with the least loss, from label statistics.

    ``counts``: result of :func:`label_counts` for the training split: ``(C,)``, ``(2, C)`` or ``(3, C)``. ``kind``:
    target kind: "classification" (log-frequencies), "multilabel" (log-odds) or "regression" (means). None for other
    kinds. ``pos_weight``: weight of positives in the loss, one number or ``(C,)``. ``class_weight``: weight of each
    class in the loss, ``(C,)``.

    Half an observation is added to every class and to both answers (Krichevsky & Trofimov 1981), so that none has
    probability 0.
    """
    if counts is None:
        return None
    if kind == "classification":
        weighted = (counts + 0.5) if class_weight is None else class_weight * (counts + 0.5)
        return (weighted / weighted.sum()).log().float()
    if kind == "multilabel":
        weight = torch.as_tensor(1.0 if pos_weight is None else pos_weight)
        return (weight * (counts[0] + 0.5) / (counts[1] + 0.5)).log().float()
    return (counts[0] / counts[1].clamp(min=1)).float()
