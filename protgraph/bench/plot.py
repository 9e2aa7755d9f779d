"""Figures of a benchmark: learning curves, and test scores with the baselines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from protgraph.bench.rows import BenchRow
from protgraph.bench.summary_table import Summary, summarize
from protgraph.file_io import atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_comparison", "plot_curves"]

# Okabe & Ito 2008, color-blind safe; their light yellow is darkened, gray is used for baselines.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#9C8A00", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_BASELINE_LINES = ((0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)))
_GRAY = "#666666"
_DPI = 150
_LABEL_GAP = 0.052  # smallest distance of two labels, as a fraction of the height of the axes


def plot_curves(rows: Sequence[BenchRow], path: Path, *, baselines: Sequence[str] = ()) -> Path | None:
    """Plot the monitored validation metric by epoch: mean over seeds and a band of ± one standard deviation.

    Baselines are horizontal lines at the value of their chosen epoch. After the epoch where the first seed stopped, the
    other seeds continue as thin lines. Markers are the chosen epochs.

    Parameters
    ----------
    rows : sequence of BenchRow
        Rows of one task.
    path : Path
        Output file, PNG.
    baselines : sequence of str
        Models that the others must beat.

    Returns
    -------
    Path or None
        None if no model has a curve.
    """
    good = [row for row in rows if not row.error]
    models = [m for m in dict.fromkeys(row.model for row in good) if m not in baselines]
    models = [m for m in models if any(row.model == m and len(_curve(row)) for row in good)]
    if not models:
        return None
    figure, axes = _figure(7.6, 4.6)
    labels = []
    for i, model in enumerate(models):
        runs = [row for row in good if row.model == model]
        end = _draw_runs(axes, runs, _COLORS[i % len(_COLORS)], _MARKERS[i % len(_MARKERS)])
        labels.append((end, model, _COLORS[i % len(_COLORS)]))
    last = max(len(_curve(row)) for row in good)
    axes.set_xlim(1, last)
    for s in summarize(good):
        if s.model in baselines and not math.isnan(y := s.of(s.monitor, "val").mean):
            axes.axhline(y, color=_GRAY, linewidth=1.2, linestyle=_baseline_line(s.model, baselines), zorder=1)
            labels.append(((last, y), f"{s.model} (baseline)", _GRAY))
    _label_right(axes, labels)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("epoch")
    first = good[0]
    axes.set_ylabel(f"validation {_words(first.monitor)}{' (lower is better)' if first.mode == 'min' else ''}")
    axes.set_title(f"{_words(first.task)} on {first.dataset}: learning curves", loc="left")
    _note(figure, f"{_seeds(good)}; markers: chosen epochs")
    return _save(figure, path)


def _draw_runs(axes: Axes, runs: Sequence[BenchRow], color: str, marker: str) -> tuple[float, float]:
    """Plot one model's curves; return the end of the longest one, for the label."""
    curves = [curve for run in runs if len(curve := _curve(run))]
    common = min(len(curve) for curve in curves)
    stack = np.stack([curve[:common] for curve in curves])  # (seeds, epochs)
    epochs, mean = np.arange(1, common + 1), stack.mean(0)
    axes.plot(epochs, mean, color=color, linewidth=1.8, zorder=3)
    if len(curves) > 1:
        sd = stack.std(0, ddof=1)
        axes.fill_between(epochs, mean - sd, mean + sd, color=color, alpha=0.15, linewidth=0)
    for run in runs:
        curve = _curve(run)
        if len(curve) > common:
            axes.plot(np.arange(common, len(curve) + 1), curve[common - 1 :], color=color, linewidth=0.7, alpha=0.6)
        if 1 <= run.best_epoch <= len(curve):
            chosen = (run.best_epoch, curve[run.best_epoch - 1])
            axes.plot(*chosen, marker, color=color, markersize=5, mec="white", mew=0.6, zorder=4, clip_on=False)
    longest = max(curves, key=len)
    end = longest if len(longest) > common else mean
    defined = np.flatnonzero(~np.isnan(end))
    last = int(defined[-1]) if len(defined) else 0
    return last + 1, float(np.nan_to_num(end[last]))


def _curve(row: BenchRow) -> np.ndarray:
    """Return the ``(epochs,)`` monitored values; empty for a run of a single epoch, or if none has a value."""
    values = [point.get(row.monitor, math.nan) for point in row.history]
    return np.array(values) if len(values) > 1 and not np.isnan(values).all() else np.array([])


def plot_comparison(rows: Sequence[BenchRow], path: Path, *, baselines: Sequence[str] = ()) -> Path | None:
    """Plot the monitored test metric of every model: mean ± standard deviation, seeds as dots, baselines as lines.

    The parameters are those of :func:`plot_curves`. Returns None if no run finished.
    """
    good = [row for row in rows if not row.error]
    shown = [s for s in summarize(good) if not math.isnan(s.score.mean)]
    if not shown:
        return None
    # The y axis points up: baselines at the bottom, models from the top in the order of the spec.
    shown = [s for s in shown if s.model in baselines][::-1] + [s for s in shown if s.model not in baselines][::-1]
    figure, axes = _figure(7.2, 1.5 + 0.42 * len(shown))
    for y, s in enumerate(shown):
        _draw_score(axes, y, s, _GRAY if s.model in baselines else _COLORS[0])
    for s in shown:
        if s.model in baselines:
            axes.axvline(
                s.score.mean, color=_GRAY, linewidth=1.1, linestyle=_baseline_line(s.model, baselines), zorder=1
            )
    axes.set_yticks(range(len(shown)), [f"{s.model} (baseline)" if s.model in baselines else s.model for s in shown])
    axes.set_ylim(-0.6, len(shown) - 0.4)
    axes.grid(False, axis="y")
    first = shown[0]
    axes.set_xlabel(f"test {_words(first.monitor)} ({'lower' if good[0].mode == 'min' else 'higher'} is better)")
    axes.set_title(f"{_words(first.task)} on {first.dataset}", loc="left")
    axes.margins(x=0.06)
    _note(figure, f"{_seeds(good)}; small dots: single seeds; lines: baselines")
    return _save(figure, path)


def _draw_score(axes: Axes, y: int, s: Summary, color: str) -> None:
    sd = 0.0 if math.isnan(s.score.sd) else s.score.sd
    if len(s.scores) > 1:
        axes.plot(s.scores, [y - 0.22] * len(s.scores), "o", color=color, alpha=0.45, markersize=3.5, mew=0, zorder=2)
    axes.errorbar(s.score.mean, y, xerr=sd, fmt="o", color=color, markersize=7, capsize=3, linewidth=1.6, zorder=3)
    axes.annotate(s.score.text(), (1.01, y), xycoords=axes.get_yaxis_transform(), va="center", fontsize=9, color=color)


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    """Create an empty figure, without the global state of pyplot."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color="#E6E6E6", linewidth=0.8)
    axes.set_axisbelow(True)
    return figure, axes


def _label_right(axes: Axes, labels: Sequence[tuple[tuple[float, float], str, str]]) -> None:
    """Write names to the right of the ends of their lines, moved apart to avoid overlaps."""
    low, high = axes.get_ylim()
    ordered = sorted(labels, key=lambda label: label[0][1])
    places = _apart([(y - low) / (high - low) for (_, y), _, _ in ordered], _LABEL_GAP)
    for (end, text, color), place in zip(ordered, places, strict=True):
        axes.annotate(
            text, end, (1.035, place), "data", "axes fraction", va="center", fontsize=9, color=color,
            arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.6, "alpha": 0.7, "shrinkA": 1, "shrinkB": 0},
        )  # fmt: skip


def _apart(values: Sequence[float], gap: float) -> list[float]:
    """Return the least-squares nearest positions that are at least ``gap`` apart; ``values`` are ascending.

    After subtracting ``gap·i`` this is isotonic regression, solved by pooling adjacent violators.
    """
    blocks: list[tuple[float, int]] = []  # (mean, members)
    for i, value in enumerate(values):
        mean, members = value - gap * i, 1
        while blocks and blocks[-1][0] > mean:
            before, n = blocks.pop()
            mean, members = (before * n + mean * members) / (n + members), n + members
        blocks.append((mean, members))
    pooled = [mean for mean, members in blocks for _ in range(members)]
    return [mean + gap * i for i, mean in enumerate(pooled)]


def _baseline_line(model: str, baselines: Sequence[str]) -> tuple[float, tuple[float, ...]]:
    return _BASELINE_LINES[list(baselines).index(model) % len(_BASELINE_LINES)]


def _words(name: str) -> str:
    upper = {"auprc", "auroc", "mcc", "rmse", "mae"}
    return " ".join(w.upper() if w in upper else w for w in name.split("_"))


def _seeds(rows: Sequence[BenchRow]) -> str:
    n = len({row.seed for row in rows})
    return "1 seed" if n == 1 else f"mean ± s.d. over {n} seeds"


def _note(figure: Figure, text: str) -> None:
    figure.supxlabel(text, fontsize=8, color=_GRAY, x=0.01, ha="left")


def _save(figure: Figure, path: Path) -> Path:
    with atomic_write(path) as temporary:
        figure.savefig(temporary, dpi=_DPI, format=path.suffix.removeprefix("."))
    return path
