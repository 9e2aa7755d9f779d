"""Metrics over the known labels of a whole split, each a number that is NaN where it is undefined.

torchmetrics takes a second to import: those who score pay for it, a command that only predicts does not.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pkgutil import resolve_name
from typing import Literal

import torch
from torch import Tensor

from protgraph.task.losses import cross_entropy, known_labels

__all__ = ["METRICS", "OTHER_CHAIN", "Metric", "SplitPredictions", "ResiduePairs", "as_metric", "best_threshold", "confusion_matrix", "compute_metrics"]


@dataclass(frozen=True, eq=False)
class ResiduePairs:
    """Which pairs of residues the M rows of an outcome are; each pair is one row.

    Parameters
    ----------
    protein : Tensor
        ``(M,)`` int64, number of the protein, ascending.
    separation : Tensor
        ``(M,)`` int64, how many positions along the chain the two are apart; :data:`OTHER_CHAIN` in different chains.
    sizes : Tensor
        ``(P,)`` int64, residues of each protein.
    """

    protein: Tensor
    separation: Tensor
    sizes: Tensor


OTHER_CHAIN = 1 << 40
"""Separation of residues of different chains: beyond every bound."""


@dataclass(frozen=True, eq=False)
class SplitPredictions:
    """What a model said about a split, and the truth; all on the CPU.

    Parameters
    ----------
    logits : Tensor
        ``(N, C)`` float, ``(N, C, 3)`` for vectors and coordinates.
    y : Tensor
        ``(N,)`` int64 classes or float32 of the logits' shape; unknown entries are −1 or NaN.
    chain : Tensor, optional
        ``(N,)`` int64, equal for the residues of one chain of one protein; None where rows are no residues.
    threshold : Tensor, optional
        ``(C,)`` log-odds from which a label counts as predicted; None is 0, a probability of one half.
    pos : Tensor, optional
        ``(N, 3)`` Å, where the model saw the residues: where predicted vectors begin.
    pairs : ResiduePairs, optional
        Where rows are pairs of residues, which.
    loss : float, optional
        Mean loss over all known labels, where rows were left out.
    """

    logits: Tensor
    y: Tensor
    chain: Tensor | None = None
    threshold: Tensor | None = None
    pos: Tensor | None = None
    pairs: ResiduePairs | None = None
    loss: float | None = None

    def with_threshold(self, threshold: Tensor | None) -> SplitPredictions:
        """The same outcome, cut elsewhere."""
        return replace(self, threshold=threshold)

    def columns(self) -> Iterable[tuple[Tensor, Tensor]]:
        """Known log-odds and int64 labels of each of the C labels."""
        for c in range(self.y.size(1)):
            there = known_labels(self.y[:, c])
            yield self.logits[there, c], self.y[there, c].long()

    def chains(self) -> Iterable[Tensor]:
        """Rows with a known label of each chain that has one."""
        there = known_labels(self.y if self.y.dim() == 1 else self.y[:, 0].reshape(len(self.y), -1)[:, 0]).nonzero().flatten()
        chain = torch.zeros_like(there) if self.chain is None else self.chain[there]
        order = chain.argsort(stable=True)
        count = torch.unique_consecutive(chain[order], return_counts=True)[1]
        return there[order].split(count.tolist())


@dataclass(frozen=True)
class Metric:
    """A named function of an :class:`SplitPredictions`.

    Parameters
    ----------
    name : str
        What tables call it.
    mode : {"max", "min"}
        Which way is better.
    function : callable
        SplitPredictions to float.
    """

    name: str
    mode: Literal["max", "min"]
    function: Callable[[SplitPredictions], float] = field(repr=False)

    def __reduce__(self) -> tuple[object, ...]:
        """By its place in its module, where :func:`as_metric` has put it for the function."""
        of = getattr(self.function, "__module__", ""), getattr(self.function, "__qualname__", "")
        found = getattr(sys.modules.get(of[0]), of[1], None) is self
        return (resolve_name, (":".join(of),)) if found else (Metric, (self.name, self.mode, self.function))

    @property
    def doc(self) -> str:
        """First line of what the function says of itself."""
        return (self.function.__doc__ or "").partition("\n")[0]

    def __call__(self, outcome: SplitPredictions) -> float:
        return float(self.function(outcome))


#: The metrics of this module, by name.
METRICS: dict[str, Metric] = {}


def as_metric(mode: Literal["max", "min"]) -> Callable[[Callable[[SplitPredictions], float]], Metric]:
    """Turn a function of an outcome into a :class:`Metric` of its name.

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


def compute_metrics(metrics: Iterable[Metric], outcome: SplitPredictions) -> dict[str, float]:
    """Every metric of an outcome, by name; NaN where no label is known."""
    empty = not bool(known_labels(outcome.y).any())
    return {m.name: math.nan if empty else m(outcome) for m in metrics}


def confusion_matrix(o: SplitPredictions) -> Tensor:
    """``(C, C)`` int64: how often the class of the row is predicted as that of the column, over known classes."""
    from torchmetrics.functional.classification import multiclass_confusion_matrix

    return multiclass_confusion_matrix(o.logits, o.y, num_classes=o.logits.size(1), ignore_index=-1)


def best_threshold(outcome: SplitPredictions) -> Tensor:
    """The log-odds at which Matthews' correlation is largest, ``(C,)`` float32; to be chosen on validation.

    Every way to cut the sorted predictions is tried; the cut lies midway between the two predictions that it parts.
    """
    best = []
    for logits, y in outcome.columns():
        order = logits.argsort(descending=True, stable=True)
        value, label = logits[order].double(), y[order].double()
        found = label.cumsum(0)
        cut = torch.arange(1, len(label) + 1, dtype=torch.float64)  # how many are called positive
        mcc = _matthews(found, cut - found, label.sum() - found, len(label) - cut - (label.sum() - found))
        parts = value.diff() != 0  # (n - 1,) no cut between equals
        if not bool(parts.any()):
            best.append(0.0)
            continue
        at = int(torch.where(parts, mcc[:-1], -torch.inf).argmax())
        better = mcc[at] >= 0  # else no positive at all is the better answer
        best.append(float((value[at] + value[at + 1]) / 2 if better else value[0] + 1))
    return torch.tensor(best, dtype=torch.float32)


def _matthews(tp: Tensor, fp: Tensor, fn: Tensor, tn: Tensor) -> Tensor:
    """``(TP·TN - FP·FN) / sqrt((TP+FP)(TP+FN)(TN+FP)(TN+FN))``; 0 where a factor is 0 (Matthews 1975)."""
    under = ((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)).sqrt()
    return torch.where(under > 0, (tp * tn - fp * fn) / under.clamp(min=1e-300), torch.zeros_like(under))


def _mean(values: list[float]) -> float:
    there = [v for v in values if not math.isnan(v)]
    return sum(there) / len(there) if there else math.nan


def _both(y: Tensor) -> bool:
    """Whether positives and negatives are there; ranking metrics are undefined otherwise."""
    return bool((y == 1).any()) and bool((y == 0).any())


@as_metric("max")
def accuracy(o: SplitPredictions) -> float:
    """Fraction of entries whose class is predicted."""
    from torchmetrics.functional.classification import multiclass_accuracy

    return multiclass_accuracy(o.logits, o.y, num_classes=o.logits.size(1), average="micro", ignore_index=-1)


@as_metric("max")
def macro_f1(o: SplitPredictions) -> float:
    """Mean F1 over the classes that occur in labels or predictions."""
    from torchmetrics.functional.classification import multiclass_f1_score

    return multiclass_f1_score(o.logits, o.y, num_classes=o.logits.size(1), average="macro", ignore_index=-1)


@as_metric("min")
def perplexity(o: SplitPredictions) -> float:
    """exp of the mean negative log-likelihood per entry; the number of classes for a uniform guess."""
    return cross_entropy(o.logits.double(), o.y).exp()


@as_metric("max")
def recovery(o: SplitPredictions) -> float:
    """Fraction of all residues whose type is predicted."""
    return accuracy(o)


@as_metric("max")
def recovery_median(o: SplitPredictions) -> float:
    """Median over chains of the fraction of residues whose type is predicted."""
    return _recoveries(o).quantile(0.5)


@as_metric("max")
def recovery_mean(o: SplitPredictions) -> float:
    """Mean over chains of the fraction of residues whose type is predicted."""
    return _recoveries(o).mean()


@as_metric("min")
def perplexity_mean(o: SplitPredictions) -> float:
    """Mean over chains of the perplexity of each."""
    return torch.stack([cross_entropy(o.logits[rows].double(), o.y[rows]).exp() for rows in o.chains()]).mean()


def _recoveries(o: SplitPredictions) -> Tensor:
    right = (o.logits.argmax(1) == o.y).double()
    return torch.stack([right[rows].mean() for rows in o.chains()])


@as_metric("max")
def auprc(o: SplitPredictions) -> float:
    """Average precision: area under the precision–recall curve, mean over labels."""
    from torchmetrics.functional.classification import binary_average_precision

    return _mean([float(binary_average_precision(x, y)) if _both(y) else math.nan for x, y in o.columns()])


@as_metric("max")
def auroc(o: SplitPredictions) -> float:
    """Area under the receiver operating characteristic, mean over labels."""
    from torchmetrics.functional.classification import binary_auroc

    return _mean([float(binary_auroc(x, y)) if _both(y) else math.nan for x, y in o.columns()])


@as_metric("max")
def mcc(o: SplitPredictions) -> float:
    """Matthews' correlation at the outcome's threshold, mean over labels."""
    cuts = o.logits.new_zeros(o.y.size(1)) if o.threshold is None else o.threshold
    values = []
    for (logits, y), cut in zip(o.columns(), cuts, strict=True):
        said, true = logits >= cut, y == 1
        counts = [(said & true), (said & ~true), (~said & true), (~said & ~true)]
        values.append(float(_matthews(*(c.sum().double() for c in counts))) if len(y) else math.nan)
    return _mean(values)


@as_metric("min")
def rmse(o: SplitPredictions) -> float:
    """Root of the mean squared error."""
    there = known_labels(o.y)
    return (o.logits - o.y)[there].double().square().mean().sqrt()


@as_metric("min")
def mae(o: SplitPredictions) -> float:
    """Mean absolute error."""
    there = known_labels(o.y)
    return (o.logits - o.y)[there].double().abs().mean()


@as_metric("min")
def rmsd(o: SplitPredictions) -> float:
    """Root of the mean squared distance from the truth within each chain, without superposition, mean over chains."""
    far = (o.logits - o.y).double().square().sum(-1)  # (N, C)
    return _mean([float(far[rows].nanmean().sqrt()) for rows in o.chains()])


@as_metric("max")
def lddt(o: SplitPredictions) -> float:
    """Local distance difference test (15 Å) of the residues' positions within each chain, mean over chains."""
    from biotite.structure import AtomArray
    from biotite.structure import lddt as lddt_of

    start = 0.0 if o.pos is None else o.pos.double()
    truth, said = ((start + x[:, 0].double()) for x in (o.y, o.logits))  # (N, 3)
    values = []
    for rows in o.chains():
        origin = truth[rows].mean(0)  # coordinates of an AtomArray are float32
        reference = AtomArray(len(rows))
        reference.res_id[:], reference.coord = rows, (truth[rows] - origin).numpy()
        values.append(float(lddt_of(reference, (said[rows] - origin).float().numpy())))
    return _mean(values)


@as_metric("max")
def pearson(o: SplitPredictions) -> float:
    """Pearson correlation within each chain, mean over the chains where it is defined."""
    return _mean(_per_chain(o))


@as_metric("min")
def pearson_undefined(o: SplitPredictions) -> float:
    """Number of chains without a Pearson correlation: fewer than two labels, or no variance."""
    return sum(math.isnan(r) for r in _per_chain(o))


@as_metric("max")
def pearson_overall(o: SplitPredictions) -> float:
    """Pearson correlation over all entries, mean over values."""
    return _mean([_pearson(o.logits[t, c], o.y[t, c]) for c in range(o.y.size(1)) for t in [known_labels(o.y[:, c])]])


def _per_chain(o: SplitPredictions) -> list[float]:
    return [_pearson(o.logits[rows, 0], o.y[rows, 0]) for rows in o.chains()]


def _pearson(x: Tensor, y: Tensor) -> float:
    """``Σ (x - x̄)(y - ȳ) / sqrt(Σ (x - x̄)² Σ (y - ȳ)²)``; NaN where a variance is nil to float32 precision."""
    x, y = x.double(), y.double()
    if len(x) < 2 or _constant(x) or _constant(y):
        return math.nan
    x, y = x - x.mean(), y - y.mean()
    return float((x @ y) / (x.square().sum() * y.square().sum()).sqrt())


def _constant(x: Tensor) -> bool:
    return bool(x.max() - x.min() <= 1e-6 * x.abs().max())


METRICS.update({name: value for name, value in list(globals().items()) if isinstance(value, Metric)})
