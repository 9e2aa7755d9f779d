"""Calibration of probabilities on validation labels, and how reliable they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict
from torch import Tensor

from protgraph.data.datasets.target import Target
from protgraph.errors import OptionError, suggest
from protgraph.evaluation.weighted_metrics import ratio
from protgraph.task.losses import known_labels
from protgraph.task.predictions import SplitPredictions

__all__ = [
    "BINS",
    "CalibrationMap",
    "CalibrationScores",
    "LabelEvents",
    "ReliabilityBins",
    "calibration_scores",
    "check_calibration_method",
    "fit_calibration",
    "label_events",
]

Method = Literal["temperature", "platt", "isotonic", "linear"]
#: Kind of target → methods.
_METHODS: Mapping[str, tuple[Method, ...]] = {
    "classification": ("temperature",),
    "multilabel": ("temperature", "platt", "isotonic"),
    "regression": ("linear",),
}
_BOUNDS = (0.02, 50.0)  # of slopes: a split that is separated perfectly has no finite optimum


class CalibrationMap(BaseModel):
    """Map from logits to calibrated probabilities or values, as plain data.

    References
    ----------
    Guo et al. 2017, arXiv:1706.04599; Platt 1999, Advances in Large Margin Classifiers 10, 61; Zadrozny & Elkan 2002,
    doi:10.1145/775047.775151.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    # ``softmax(a z)`` or ``sigmoid(a z)`` (Guo et al. 2017); ``sigmoid(a z + b)`` for each yes/no label (Platt 1999);
    # a piecewise linear, never decreasing function of each logit (Zadrozny & Elkan 2002); ``a z + b`` for each value
    # of a regression, by least squares
    method: Method
    slope: list[float] = []  # a: the inverse temperature, one number, or one for each label
    offset: list[float] = []  # b of each label or value, for "platt" and "linear"
    # logits and probabilities of each label, for "isotonic"; linear between them, constant outside
    knots: list[tuple[list[float], list[float]]] = []
    split: str = "val"  # split that it was fitted on
    proteins: int = 0  # proteins and labels: proteins and known labels of that split
    labels: int = 0

    def probabilities(self, logits: Tensor, target: Target) -> Tensor:
        """Return calibrated probabilities or values of logits, ``(N, C)`` float32 each; of classes they sum to 1."""
        z = logits.double()
        if target.kind == "classification":
            return (z * self.slope[0]).softmax(1).float()
        if self.method == "isotonic":
            columns = []
            for column, (x, y) in zip(z.T.numpy(), self.knots, strict=True):
                columns.append(np.interp(column, x, y))
            return torch.from_numpy(np.stack(columns, 1)).float()
        slope = torch.tensor(self.slope, dtype=z.dtype)
        offset = torch.tensor(self.offset or [0.0], dtype=z.dtype)
        values = z * slope + offset
        if self.method != "linear":
            values = values.sigmoid()
        return values.float()

    def __str__(self) -> str:
        fitted = f"fitted on {self.labels} labels of {self.proteins} proteins of the split {self.split}"
        if self.method == "isotonic":
            return f"isotonic, {sum(len(x) for x, _ in self.knots)} knots, {fitted}"
        slopes = self.slope if self.method == "linear" else [1 / a for a in self.slope]
        text = f"{self.method} {', '.join(f'{a:.3g}' for a in slopes)}"
        if self.offset:
            text += f", offset {', '.join(f'{b:.3g}' for b in self.offset)}"
        return f"{text}, {fitted}"


@dataclass(frozen=True)
class CalibrationScores:
    """Agreement of predicted probabilities with observed frequencies."""

    # expected calibration error: mean over 15 bins of equal width, weighted by their sizes, of the absolute
    # difference between mean probability and frequency. Of classes: of the predicted one (Guo et al. 2017)
    ece: float
    # Brier score: mean squared difference of probabilities and labels; of classes the sum over them (Brier 1950)
    brier: float


def check_calibration_method(method: str, target: Target) -> Method:
    """Return a method; raise :class:`OptionError` if probabilities of a target cannot be calibrated in this way."""
    allowed = _METHODS.get(target.kind, ())
    if not allowed:
        raise OptionError(
            f"calibration {method!r}: target {target.name!r} is {target.kind}. Allowed for classes, yes/no labels "
            "and values. Leave it out."
        )
    for name in allowed:
        if name == method:
            return name
    hint = suggest(method, allowed)
    raise OptionError(f"calibration {method!r} of {target.kind}.{hint} Allowed: {', '.join(allowed)}.")


def fit_calibration(
    method: str, predictions: SplitPredictions, target: Target, *, split: str = "val"
) -> CalibrationMap:
    """Fit a calibration to the predictions on the validation split, by likelihood or least squares."""
    checked = check_calibration_method(method, target)
    known = known_labels(predictions.y)
    rows = known if known.dim() == 1 else known.any(1)
    proteins = 0 if predictions.protein is None else len(predictions.protein[rows].unique())
    labels = int(known.sum())
    if not labels:
        raise OptionError(f"calibration {method!r}: no known label in the split {split!r}. Leave it out.")
    lines: list[tuple[float, float]] = []  # slope and offset of each column
    knots: list[tuple[list[float], list[float]]] = []
    if method == "isotonic":
        knots = [_isotonic(z.double().numpy(), y.numpy()) for z, y in predictions.columns()]
    else:
        lines = _lines(method, predictions, target, known)
    return CalibrationMap(
        method=checked,
        slope=[slope for slope, _ in lines],
        offset=[offset for _, offset in lines] if method in ("platt", "linear") else [],
        knots=knots,
        split=split,
        proteins=proteins,
        labels=labels,
    )


def _lines(method: str, predictions: SplitPredictions, target: Target, known: Tensor) -> list[tuple[float, float]]:
    """Return slope and offset of each column."""
    if target.kind == "classification":
        return [(_class_slope(predictions.logits[known].double(), predictions.y[known]), 0.0)]
    lines = []
    if target.kind == "regression":
        for c, mask in enumerate(known.unbind(1)):
            lines.append(_line(predictions.logits[mask, c], predictions.y[mask, c]))
    else:
        for z, y in predictions.columns():
            lines.append(_logistic(z.double().numpy(), y.numpy(), has_offset=method == "platt"))
    return lines


def _line(z: Tensor, y: Tensor) -> tuple[float, float]:
    """Return slope and offset of the least-squares line of values ``(N,)`` over predictions ``(N,)``."""
    if not len(z):
        return 1.0, 0.0
    z = z.double()
    y = y.double()
    if len(z) < 2 or z.std() == 0:
        return 1.0, float((y - z).mean())
    centered = z - z.mean()
    covariance = (centered * (y - y.mean())).mean()
    slope = float(covariance / centered.square().mean())
    offset = float(y.mean() - slope * z.mean())
    return slope, offset


def _class_slope(z: Tensor, y: Tensor) -> float:
    """Return the slope with the largest likelihood of classes ``(N,)`` under logits ``(N, C)``."""
    from scipy.optimize import minimize

    z = z - z.gather(1, y[:, None])  # (N, C)

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        scaled = z * float(parameters[0])
        value = scaled.logsumexp(1).mean()
        gradient = (scaled.softmax(1) * z).sum(1).mean()
        return float(value), np.array([float(gradient)])

    best = minimize(loss, [1.0], jac=True, method="L-BFGS-B", bounds=[_BOUNDS])
    return float(best.x[0])


def _logistic(z: np.ndarray, y: np.ndarray, *, has_offset: bool) -> tuple[float, float]:
    """Return slope and offset with the largest likelihood of labels ``(N,)`` under log-odds ``(N,)``."""
    from scipy.optimize import minimize

    if not len(z):
        return 1.0, 0.0

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        slope, offset = parameters
        x = slope * z + offset
        value = np.mean(np.logaddexp(0, x) - y * x)
        residual = np.exp(-np.logaddexp(0, -x)) - y
        gradient = np.array([np.mean(residual * z), np.mean(residual) * has_offset])
        return float(value), gradient

    bounds_of_offset = (None, None) if has_offset else (0.0, 0.0)
    best = minimize(loss, [1.0, 0.0], jac=True, method="L-BFGS-B", bounds=[_BOUNDS, bounds_of_offset])
    slope, offset = best.x
    return float(slope), float(offset)


def _isotonic(z: np.ndarray, y: np.ndarray) -> tuple[list[float], list[float]]:
    """Return logits and probabilities between which the least-squares isotonic function is linear."""
    from scipy.optimize import isotonic_regression

    if not len(z):
        return [0.0], [0.5]
    x, inverse, count = np.unique(z, return_inverse=True, return_counts=True)
    mean = np.bincount(inverse, weights=y) / count
    fitted = isotonic_regression(mean, weights=count)
    starts, ends = fitted.blocks[:-1], fitted.blocks[1:] - 1
    rows = np.unique(np.concatenate([starts, ends]))
    return x[rows].tolist(), fitted.x[rows].tolist()


def calibration_scores(p: Tensor, predictions: SplitPredictions, target: Target) -> CalibrationScores:
    """Compare probabilities ``(N, C)`` with the known labels; labels of several columns count together."""
    events = label_events(p, predictions)
    error = float(events.bins().error()[0]) if len(events.row) else 0.0
    known = known_labels(predictions.y)
    if target.kind == "classification":
        truth = torch.nn.functional.one_hot(predictions.y[known].long(), p.size(1))
        brier = float((p[known].double() - truth).square().sum(1).mean())
    else:
        brier = float(np.square(events.probability - events.occurred).mean())
    return CalibrationScores(error, brier)


#: Bins of equal width of the calibration error, as in Guo et al. 2017.
BINS = 15


@dataclass(frozen=True, eq=False)
class LabelEvents:
    """Events with a predicted probability: known yes/no labels, or correct predictions of a class."""

    probability: np.ndarray  # ``(M,)`` float64; for classes, that of the predicted class
    occurred: np.ndarray  # ``(M,)`` float64: 1 for a positive label or a correct class, else 0
    row: np.ndarray  # ``(M,)``, row of the predictions

    def bins(self, group: np.ndarray | None = None, groups: int = 1, *, bins: int = BINS) -> ReliabilityBins:
        """Sort the events into bins ``[a, b)``, the last one with 1, as torchmetrics has them.

        ``group``: ``(M,)``, number of the group of each event, e.g. its protein; one group by default.
        """
        number = np.minimum((self.probability * bins).astype(int), bins - 1)
        if group is not None:
            number = group * bins + number
        sums = []
        for weights in (None, self.probability, self.occurred):
            of_bins = np.bincount(number, weights, minlength=groups * bins)
            sums.append(of_bins.astype(float).reshape(-1, bins))
        return ReliabilityBins(*sums)


def label_events(p: Tensor, predictions: SplitPredictions) -> LabelEvents:
    """Return the events of probabilities ``(N, C)`` and known labels; labels of several columns count together."""
    known = known_labels(predictions.y)
    row = known.nonzero()[:, 0]
    if predictions.y.is_floating_point():
        occurred, probability = predictions.y[known], p[known]
    else:
        probability, best = p[known].max(1)
        occurred = best == predictions.y[known]
    return LabelEvents(probability.double().numpy(), occurred.double().numpy(), row.numpy())


@dataclass(frozen=True, eq=False)
class ReliabilityBins:
    """Sums over the events of each group, e.g. protein, in bins of equal width."""

    # count, probability, positive: ``(G, B)``: number of events, sum of the predicted probabilities, and number of
    # events that occurred
    count: np.ndarray
    probability: np.ndarray
    positive: np.ndarray

    def error(self, times: np.ndarray | None = None) -> np.ndarray:
        """Compute the expected calibration error of samples of groups.

        ``Σ_b n_b / N |mean probability in b − fraction of positives in b|``.

        ``times``: ``(R, G)``, number of copies of each group; one sample of all groups by default. Returns ``(R,)``;
        NaN without events.

        References
        ----------
        Guo et al. 2017, "On calibration of modern neural networks", arXiv:1706.04599, eq. 5.
        """
        times = np.ones((1, len(self.count))) if times is None else times
        gaps = np.abs(times @ self.probability - times @ self.positive).sum(1)
        return ratio(gaps, times @ self.count.sum(1))

    def curve(self) -> list[tuple[float, float, int]]:
        """Return mean probability, fraction of positives and number of events of each bin that has any."""
        count, probability, positive = (x.sum(0) for x in (self.count, self.probability, self.positive))
        used = np.flatnonzero(count)
        return [(float(probability[b] / count[b]), float(positive[b] / count[b]), int(count[b])) for b in used]
