"""Reliability of predicted probabilities: sums in bins of equal width, and the expected calibration error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from protgraph.task.losses import known_labels
from protgraph.task.predictions import SplitPredictions
from protgraph.train.weighted_metrics import ratio

__all__ = ["BINS", "LabelEvents", "ReliabilityBins", "label_events"]

#: Bins of equal width of the calibration error, as in Guo et al. 2017.
BINS = 15


@dataclass(frozen=True, eq=False)
class LabelEvents:
    """Events with a predicted probability: known yes/no labels, or correct predictions of a class.

    Parameters
    ----------
    probability : ndarray
        ``(M,)`` float64; for classes, that of the predicted class.
    occurred : ndarray
        ``(M,)`` float64: 1 for a positive label or a correct class, else 0.
    row : ndarray
        ``(M,)``, row of the predictions.
    """

    probability: np.ndarray
    occurred: np.ndarray
    row: np.ndarray

    def bins(self, group: np.ndarray | None = None, groups: int = 1, *, bins: int = BINS) -> ReliabilityBins:
        """Sort the events into bins ``[a, b)``, the last one with 1, as torchmetrics has them.

        Parameters
        ----------
        group : ndarray, optional
            ``(M,)``, number of the group of each event, e.g. its protein; one group by default.
        groups : int
            Number of groups.
        bins : int
        """
        place = np.minimum((self.probability * bins).astype(int), bins - 1)
        place = place if group is None else group * bins + place
        weights = (None, self.probability, self.occurred)
        sums = (np.bincount(place, w, minlength=groups * bins).astype(float).reshape(-1, bins) for w in weights)
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
    return LabelEvents(*(x.double().numpy() for x in (probability, occurred)), row.numpy())


@dataclass(frozen=True, eq=False)
class ReliabilityBins:
    """Sums over the events of each group, e.g. protein, in bins of equal width.

    Parameters
    ----------
    count, probability, positive : ndarray
        ``(G, B)``: number of events, sum of the predicted probabilities, and number of events that occurred.
    """

    count: np.ndarray
    probability: np.ndarray
    positive: np.ndarray

    def error(self, times: np.ndarray | None = None) -> np.ndarray:
        """Compute the expected calibration error of samples of groups.

        ``Σ_b n_b / N |mean probability in b − fraction of positives in b|``.

        Parameters
        ----------
        times : ndarray, optional
            ``(R, G)``, number of copies of each group; one sample of all groups by default.

        Returns
        -------
        ndarray
            ``(R,)``; NaN without events.

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
