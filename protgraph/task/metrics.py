"""Metrics over the known labels of a whole split: each is a number, NaN if it is undefined.

torchmetrics is imported inside the functions, because it takes a second.
"""

# Not torchmetrics 1.9 (2026-11-23): Pearson correlation is 0 for constant values, where it is undefined; rmse and mae
# sum in float32; Matthews' correlation is 1 or -1 if only one class occurs, here 0; dice is 0 without positives.

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pkgutil import resolve_name
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from protgraph import registry
from protgraph.registry.component_fault import ComponentScope
from protgraph.structure.compare.local_distances import compute_lddt
from protgraph.task.losses import cross_entropy, known_labels
from protgraph.task.predictions import SplitPredictions

__all__ = [
    "Metric",
    "as_metric",
    "best_threshold",
    "compute_metrics",
    "confusion_matrix",
    "mean_ranks",
    "metric_of_values",
    "pearson_correlation",
    "registered_metric",
]
ENTRY_POINTS = {
    "protgraph.metrics": {
        "accuracy": "accuracy",
        "auprc": "auprc",
        "auroc": "auroc",
        "dice": "dice",
        "dice_mean": "dice_mean",
        "lddt": "lddt",
        "macro_f1": "macro_f1",
        "mae": "mae",
        "mcc": "mcc",
        "nrmse": "nrmse",
        "pearson": "pearson",
        "pearson_overall": "pearson_overall",
        "pearson_undefined": "pearson_undefined",
        "perplexity": "perplexity",
        "perplexity_mean": "perplexity_mean",
        "recovery": "recovery",
        "recovery_mean": "recovery_mean",
        "recovery_median": "recovery_median",
        "rms_error": "rms_error",
        "rmsd": "rmsd",
        "rmse": "rmse",
        "spearman_overall": "spearman_overall",
    }
}


@dataclass(frozen=True)
class Metric:
    """A named function of :class:`~protgraph.task.SplitPredictions`.

    Parameters
    ----------
    name : str
        Name in tables.
    mode : {"max", "min"}
        Direction of improvement.
    function : callable
        From predictions to a float.
    weighted : callable, optional
        The same for many samples of proteins at once, which makes intervals fast: from the predictions, the number
        ``(N,)`` int64 of the protein of each row, and the copies ``(R, P)`` of each of P proteins in R samples, to the
        R values. A value equals that of the rows of each protein, repeated.
    """

    name: str
    mode: Literal["max", "min"]
    function: Callable[[SplitPredictions], float] = field(repr=False)
    weighted: Callable[[SplitPredictions, Tensor, np.ndarray], np.ndarray] | None = field(default=None, repr=False)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle a metric of a module by its name there, since :func:`as_metric` replaces the function."""
        module = getattr(self.function, "__module__", "")
        name = getattr(self.function, "__qualname__", "")
        if getattr(sys.modules.get(module), name, None) is self:
            return resolve_name, (f"{module}:{name}",)
        return Metric, (self.name, self.mode, self.function, self.weighted)

    @property
    def doc(self) -> str:
        """First line of the docstring of the function."""
        return (self.function.__doc__ or "").partition("\n")[0]

    def __call__(self, predictions: SplitPredictions) -> float:
        return float(self.function(predictions.copy()))  # what a metric changes in place, the next one does not read


def registered_metric(name: str) -> Metric | None:
    """Return the metric that is registered under a name; None if there is none."""
    return registry.metrics.get(name) if name in registry.metrics else None


def as_metric(mode: Literal["max", "min"]) -> Callable[[Callable[[SplitPredictions], float]], Metric]:
    """Return a decorator that makes a function of predictions a :class:`Metric` with its name.

    Examples
    --------
    >>> @as_metric("min")
    ... def worst(o: SplitPredictions) -> float:
    ...     "Largest absolute error."
    ...     return (o.logits - o.y).abs().max()
    >>> worst(SplitPredictions(torch.tensor([[1.0], [2.0]]), torch.tensor([[1.5], [2.0]])))
    0.5
    """
    return lambda function: Metric(function.__name__, mode, function)


def compute_metrics(metrics: Iterable[Metric], predictions: SplitPredictions, *, task: str = "") -> dict[str, float]:
    """Compute metrics by name; NaN if no label is known.

    ``task``: name of the task, for errors. Raises :class:`ComponentError` if a metric raises an error or does not
    return a number.
    """
    values = {}
    is_empty = not bool(known_labels(predictions.y).any())
    for metric in metrics:
        with ComponentScope("task", task, metric.function, action=f"metric {metric.name!r}"):
            values[metric.name] = math.nan if is_empty else metric(predictions)
    return values


def metric_of_values(metric: Metric, numbers: Sequence[int], name: str) -> Metric:
    """Return a metric for some of the values of a target, e.g. "rmse/tm" for the value "tm"."""
    return Metric(f"{metric.name}/{name}", metric.mode, partial(_compute_for_values, metric, list(numbers)))


def _compute_for_values(metric: Metric, numbers: list[int], o: SplitPredictions) -> float:
    scale = None if o.scale is None else o.scale[numbers]
    return metric(replace(o, logits=o.logits[:, numbers], y=o.y[:, numbers], scale=scale))


def confusion_matrix(o: SplitPredictions) -> Tensor:
    """Count known classes by true (row) and predicted class (column), ``(C, C)`` int64."""
    from torchmetrics.functional.classification import multiclass_confusion_matrix

    return multiclass_confusion_matrix(o.logits, o.y, num_classes=o.logits.size(1), ignore_index=-1)


def best_threshold(predictions: SplitPredictions) -> Tensor:
    """Find the log-odds with the largest Matthews correlation, ``(C,)`` float32; for the validation split.

    All thresholds midway between two different sorted predictions are compared.
    """
    best = [_best_threshold(logits, y) for logits, y in predictions.columns()]
    return torch.tensor(best, dtype=torch.float32)


def _best_threshold(logits: Tensor, y: Tensor) -> float:
    """Find the threshold of one label from its known rows, ``(M,)`` each."""
    order = logits.argsort(descending=True, stable=True)
    value = logits[order].double()
    label = y[order].double()

    # the Matthews correlation if the first 1, 2, … M rows are called
    called = torch.arange(1, len(label) + 1, dtype=torch.float64)
    tp = label.cumsum(0)
    fp = called - tp
    fn = label.sum() - tp
    tn = len(label) - called - fn
    mcc = _matthews(tp, fp, fn, tn)

    differs = value.diff() != 0  # (M - 1,) no threshold between equals
    if not bool(differs.any()):
        return 0.0
    last = int(torch.where(differs, mcc[:-1], -torch.inf).argmax())
    if mcc[last] < 0:  # calling none is better
        return float(value[0] + 1)
    return float((value[last] + value[last + 1]) / 2)


def _matthews(tp: Tensor, fp: Tensor, fn: Tensor, tn: Tensor) -> Tensor:
    """Compute ``(TP·TN - FP·FN) / sqrt((TP+FP)(TP+FN)(TN+FP)(TN+FN))``, 0 if a factor is 0 (Matthews 1975)."""
    denominator = ((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)).sqrt()
    quotient = (tp * tn - fp * fn) / denominator.clamp(min=1e-300)
    return torch.where(denominator > 0, quotient, torch.zeros_like(denominator))


def _mean(values: list[float]) -> float:
    defined = [v for v in values if not math.isnan(v)]
    return sum(defined) / len(defined) if defined else math.nan


def _has_both(y: Tensor) -> bool:
    """Return whether positives and negatives occur; ranking metrics are undefined otherwise."""
    return bool((y == 1).any()) and bool((y == 0).any())


@as_metric("max")
def accuracy(o: SplitPredictions) -> float:
    """Fraction of entries whose class is predicted."""
    from torchmetrics.functional.classification import multiclass_accuracy

    classes = o.logits.size(1)
    return float(multiclass_accuracy(o.logits, o.y, num_classes=classes, average="micro", ignore_index=-1))


@as_metric("max")
def macro_f1(o: SplitPredictions) -> float:
    """Mean F1 over the classes that occur in labels or predictions."""
    from torchmetrics.functional.classification import multiclass_f1_score

    classes = o.logits.size(1)
    return float(multiclass_f1_score(o.logits, o.y, num_classes=classes, average="macro", ignore_index=-1))


@as_metric("min")
def perplexity(o: SplitPredictions) -> float:
    """Exponential of the mean negative log-likelihood per entry; the number of classes for a uniform guess."""
    return float(cross_entropy(o.logits.double(), o.y).exp())


@as_metric("max")
def recovery(o: SplitPredictions) -> float:
    """Fraction of all residues whose type is predicted."""
    return accuracy(o)


@as_metric("max")
def recovery_median(o: SplitPredictions) -> float:
    """Median over chains of the fraction of residues whose type is predicted."""
    return float(_recoveries(o).quantile(0.5))


@as_metric("max")
def recovery_mean(o: SplitPredictions) -> float:
    """Mean over chains of the fraction of residues whose type is predicted."""
    return float(_recoveries(o).mean())


@as_metric("min")
def perplexity_mean(o: SplitPredictions) -> float:
    """Mean over chains of the perplexity of each."""
    per_chain = [cross_entropy(o.logits[rows].double(), o.y[rows]).exp() for rows in o.chains()]
    return float(torch.stack(per_chain).mean())


def _recoveries(o: SplitPredictions) -> Tensor:
    right = (o.logits.argmax(1) == o.y).double()
    return torch.stack([right[rows].mean() for rows in o.chains()])


@as_metric("max")
def auprc(o: SplitPredictions) -> float:
    """Average precision: area under the precision–recall curve, mean over labels."""
    from torchmetrics.functional.classification import binary_average_precision

    return _mean([float(binary_average_precision(x, y)) for x, y in o.columns() if _has_both(y)])


@as_metric("max")
def auroc(o: SplitPredictions) -> float:
    """Area under the receiver operating characteristic, mean over labels."""
    from torchmetrics.functional.classification import binary_auroc

    return _mean([float(binary_auroc(x, y)) for x, y in o.columns() if _has_both(y)])


@as_metric("max")
def mcc(o: SplitPredictions) -> float:
    """Matthews correlation at the threshold, mean over labels."""
    return _mean([float(_matthews(*counts)) for counts in _decisions(o) if sum(counts)])


@as_metric("max")
def dice(o: SplitPredictions) -> float:
    """Dice coefficient (F1) of the positives at the threshold, mean over labels."""
    return _mean([float(_dice(*counts)) for counts in _decisions(o)])


@as_metric("max")
def dice_mean(o: SplitPredictions) -> float:
    """Mean over proteins of the Dice coefficient of each, for those with a true or predicted positive."""
    protein = torch.zeros(len(o.y), dtype=torch.int64) if o.protein is None else o.protein
    place = protein.unique(return_inverse=True)[1]
    values = torch.cat([_dice(*counts) for counts in _decisions(o, place)])
    return float(values.nanmean())


def _decisions(o: SplitPredictions, protein: Tensor | None = None) -> Iterable[list[Tensor]]:
    """Yield true and false positives, false and true negatives of each label, by place: ``(P,)`` float64 each."""
    threshold = o.logits.new_zeros(o.y.size(1)) if o.threshold is None else o.threshold
    is_called = o.logits >= threshold.expand_as(o.y)
    is_true = o.y == 1
    if protein is None:
        protein = torch.zeros(len(o.y), dtype=torch.int64)
    for c, known in enumerate(known_labels(o.y).unbind(1)):
        called = is_called[:, c]
        true = is_true[:, c]
        outcomes = (called & true, called & ~true, ~called & true, ~called & ~true)
        yield [torch.bincount(protein, (outcome & known).double(), minlength=1) for outcome in outcomes]


def _dice(tp: Tensor, fp: Tensor, fn: Tensor, tn: Tensor) -> Tensor:
    """Compute ``2 TP / (2 TP + FP + FN)``; NaN without positives."""
    return 2 * tp / (2 * tp + fp + fn)


@as_metric("min")
def rmse(o: SplitPredictions) -> float:
    """Root of the mean squared error, mean over values."""
    return _mean([float(error.square().mean().sqrt()) for error, _ in _errors(o)])


@as_metric("min")
def mae(o: SplitPredictions) -> float:
    """Mean absolute error, mean over values."""
    return _mean([float(error.abs().mean()) for error, _ in _errors(o)])


@as_metric("min")
def nrmse(o: SplitPredictions) -> float:
    """Root-mean-square error relative to the standard deviation of the training labels, mean over values.

    It has no unit, so that values of any size count alike; about 1 for predicting the mean label. Without ``o.scale``
    it is relative to the standard deviation of the labels of the split, or to their root mean square if all are equal.
    """
    relative = []
    for c, (error, y) in enumerate(_errors(o)):
        if o.scale is not None:
            spread = o.scale[c].double()
        else:
            mean = 0.0 if len(y) and _constant(y) else y.mean()
            spread = (y - mean).square().mean().sqrt()
        spread = spread.clamp(min=torch.finfo(torch.float32).tiny)
        relative.append(float(error.square().mean().sqrt() / spread))
    return _mean(relative)


@as_metric("min")
def rms_error(o: SplitPredictions) -> float:
    """Root-mean-square error of all values together, each relative to ``o.scale``.

    For values that rotations mix, such as the components of a vector: no orientation of the proteins is better.
    """
    known = known_labels(o.y)
    error = ((o.logits - o.y) / (1 if o.scale is None else o.scale))[known].double()
    return float(error.square().mean().sqrt()) if len(error) else math.nan


def _errors(o: SplitPredictions) -> Iterable[tuple[Tensor, Tensor]]:
    """Yield the errors and the labels of each value that are known, ``(K, …)`` float64 each."""
    for c, mask in enumerate(known_labels(o.y).unbind(1)):
        y = o.y[:, c][mask]
        yield (o.logits[:, c][mask] - y).double(), y.double()


@as_metric("min")
def rmsd(o: SplitPredictions) -> float:
    """Root-mean-square deviation within each chain, without superposition, mean over chains."""
    distance = (o.logits - o.y).double().square().sum(-1)  # (N, C)
    return _mean([float(distance[rows].nanmean().sqrt()) for rows in o.chains()])


@as_metric("max")
def lddt(o: SplitPredictions) -> float:
    """Local distance difference test (15 Å) of residue positions within each chain, mean over chains."""
    start = 0.0 if o.pos is None else o.pos.double()
    truth, predicted = ((start + x[:, 0].double()) for x in (o.y, o.logits))  # (N, 3)
    values = []
    for rows in o.chains():
        values.append(compute_lddt(predicted[rows].numpy(), truth[rows].numpy()).score)
    return _mean(values)


@as_metric("max")
def pearson(o: SplitPredictions) -> float:
    """Pearson correlation within each chain, mean over the chains for which it is defined."""
    return _mean(_per_chain(o))


@as_metric("min")
def pearson_undefined(o: SplitPredictions) -> float:
    """Count chains without a Pearson correlation: fewer than two labels, or no variance."""
    return sum(math.isnan(r) for r in _per_chain(o))


@as_metric("max")
def pearson_overall(o: SplitPredictions) -> float:
    """Pearson correlation over all entries, mean over values."""
    masks = known_labels(o.y).unbind(1)
    return _mean([pearson_correlation(o.logits[mask, c], o.y[mask, c]) for c, mask in enumerate(masks)])


@as_metric("max")
def spearman_overall(o: SplitPredictions) -> float:
    """Spearman correlation over all entries, mean over values; ties have their mean rank."""
    masks = known_labels(o.y).unbind(1)
    return _mean(
        [pearson_correlation(mean_ranks(o.logits[mask, c]), mean_ranks(o.y[mask, c])) for c, mask in enumerate(masks)]
    )


def mean_ranks(x: Tensor) -> Tensor:
    """Return the mean rank of each value among all, ``(N,)`` float64."""
    place, count = x.unique(return_inverse=True, return_counts=True)[1:]
    last = count.cumsum(0).double()
    return (last - (count - 1) / 2)[place]


def _per_chain(o: SplitPredictions) -> list[float]:
    return [pearson_correlation(o.logits[rows, 0], o.y[rows, 0]) for rows in o.chains()]


def pearson_correlation(x: Tensor, y: Tensor) -> float:
    """Compute ``Σ (x - x̄)(y - ȳ) / sqrt(Σ (x - x̄)² Σ (y - ȳ)²)``; NaN if a variance is 0 to float32 precision."""
    x, y = x.double(), y.double()
    if len(x) < 2 or _constant(x) or _constant(y):
        return math.nan
    x, y = x - x.mean(), y - y.mean()
    return float((x @ y) / (x.square().sum() * y.square().sum()).sqrt())


def _constant(x: Tensor) -> bool:
    return bool(x.max() - x.min() <= 1e-6 * x.abs().max())
