"""Reliability diagram of a trained model: observed frequency against predicted probability."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from protgraph.data.datasets.target import Target
from protgraph.task.predictions import SplitPredictions
from protgraph.train.calibration import CalibrationMap
from protgraph.train.predict import probabilities
from protgraph.train.reliability import label_events

__all__ = ["write_reliability_figure"]

_COLORS = {"uncalibrated": "#999999", "calibrated": "#0072b2"}


def write_reliability_figure(
    path: str | Path, splits: Mapping[str, SplitPredictions], calibration: CalibrationMap, target: Target
) -> Path:
    """Draw a reliability diagram for each split, uncalibrated and calibrated; the same input gives the same bytes."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    path = Path(path)
    with mpl.rc_context({"svg.hashsalt": "reliability", "font.size": 8}):
        figure = Figure(figsize=(2.6 * len(splits), 2.6), layout="constrained")
        axes = figure.subplots(1, len(splits), squeeze=False)[0]
        for axis, (split, predictions) in zip(axes, splits.items(), strict=True):
            axis.plot([0, 1], [0, 1], color="#cccccc", linewidth=0.8)
            for label, p in _curves(predictions.logits, calibration, target).items():
                curve = label_events(p, predictions).bins().curve()
                x, y = [point[0] for point in curve], [point[1] for point in curve]
                axis.plot(x, y, marker="o", markersize=2.5, linewidth=1, color=_COLORS[label], label=label)
            axis.set(title=split, xlabel="predicted probability", xlim=(0, 1), ylim=(0, 1), aspect="equal")
        axes[0].set_ylabel("observed frequency")
        axes[0].legend(frameon=False, fontsize=7)
        figure.savefig(path, format="svg", metadata={"Date": None})
    return path


def _curves(logits: Tensor, calibration: CalibrationMap, target: Target) -> dict[str, Tensor]:
    return {"uncalibrated": probabilities(logits, target), "calibrated": calibration.probabilities(logits, target)}
