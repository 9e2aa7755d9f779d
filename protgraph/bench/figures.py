"""Figures of a benchmark: learning curves, scores, reliability, ranks and confusion of residue types.

Each function returns a matplotlib figure. :func:`save_figure` writes it to the folder of the benchmark,
:func:`inline_svg` puts it into the page of the report.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from protgraph.bench.paired_tests import RankComparison
from protgraph.bench.rows import BenchRow
from protgraph.evaluation.bootstrap import BootstrapInterval
from protgraph.file_io import atomic_write
from protgraph.structure.residues.alphabet import ALPHABET

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "FEW_ROWS",
    "TYPE_ORDER",
    "confusion_figure",
    "curves_figure",
    "inline_svg",
    "make_figure",
    "ranks_figure",
    "reliability_figure",
    "save_figure",
    "scores_figure",
    "style_of",
]

#: Bins of fewer rows are left out of the line of a reliability diagram.
FEW_ROWS = 20
#: Similar residue types next to each other: hydrophobic, aromatic, small, polar, basic, acidic.
TYPE_ORDER = "ILVMFWYCAGPSTNQHKRED"

#: Okabe & Ito 2008, color-blind safe, light yellow darkened; then the same with dashes.
_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B87A00", "#3A96C9", "#857400", "#444444")
_DASHES = ("solid", "dashed", "dotted", "dashdot")
_GRAY = "#59636e"
_DPI = 150
_SERIES = "series:"  # gid of the artists of one model, which the script of the page hides and shows


class LineStyle(NamedTuple):
    """Color and dashes of the lines of one model."""

    color: str
    dashes: str


def style_of(index: int) -> LineStyle:
    """Return the style of the model with this index."""
    return LineStyle(_COLORS[index % len(_COLORS)], _DASHES[index // len(_COLORS) % len(_DASHES)])


def curves_figure(rows: Sequence[BenchRow], series: Mapping[str, int]) -> Figure | None:
    """Plot the monitored validation metric by epoch: mean over seeds, and a band of ± one standard deviation.

    Each model ends where its first seed stopped. Markers are the chosen epochs. None if no run has two epochs.
    """
    curves = _curves(rows)
    if not curves:
        return None
    figure, axes = _figure(6.4, 3.4)
    for model, runs in curves.items():
        style = style_of(series[model])
        gid = _SERIES + model
        num_epochs = min(len(values) for _, values in runs)  # that all seeds have
        stack = np.stack([values[:num_epochs] for _, values in runs])  # (seeds, epochs)
        epochs = np.arange(1, num_epochs + 1)
        mean = stack.mean(0)
        axes.plot(epochs, mean, label=model, gid=gid, color=style.color, linestyle=style.dashes)
        if len(runs) > 1:
            sd = stack.std(0, ddof=1)
            axes.fill_between(epochs, mean - sd, mean + sd, color=style.color, alpha=0.14, linewidth=0, gid=gid)
        for row, values in runs:
            if 1 <= row.best_epoch <= len(values):
                score = values[row.best_epoch - 1]
                axes.plot(row.best_epoch, score, "o", color=style.color, markersize=3.5, gid=gid)
    first = next(row for row in rows if not row.error)
    from matplotlib.ticker import MaxNLocator

    locator = axes.xaxis.get_major_locator()
    assert isinstance(locator, MaxNLocator)  # the default
    locator.set_params(integer=True)
    axes.set_xlabel("epoch; dots: chosen epochs")
    axes.set_ylabel(f"validation {first.monitor}{_direction(first)}")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
    return figure


def _curves(rows: Sequence[BenchRow]) -> dict[str, list[tuple[BenchRow, np.ndarray]]]:
    """Return the runs of each model with two epochs or more, and the monitored validation metric by epoch."""
    curves: dict[str, list[tuple[BenchRow, np.ndarray]]] = {}
    for row in rows:
        values = np.array([point.get(row.monitor, math.nan) for point in row.history])
        if not row.error and len(values) > 1 and not np.isnan(values).all():  # undefined for a constant prediction
            curves.setdefault(row.model, []).append((row, values))
    return curves


def scores_figure(
    rows: Sequence[BenchRow],
    split: str,
    series: Mapping[str, int],
    *,
    baselines: Sequence[str] = (),
    intervals: Mapping[str, BootstrapInterval] | None = None,
) -> Figure | None:
    """Plot the monitored metric of every model on a split: mean, seeds as small dots, baselines as dashed lines.

    ``intervals`` are 95 % over proteins; models without one have ± one standard deviation over seeds. None if no model
    has a value.
    """
    scores = _scores(rows, split)
    if not scores:
        return None
    figure, axes = _figure(6.4, 1.0 + 0.3 * len(scores))
    for row_number, (model, values) in enumerate(scores.items()):
        style = style_of(series[model])
        gid = _SERIES + model
        mean, low, high = _bar(values, (intervals or {}).get(model))
        axes.plot([low, high], [row_number, row_number], color=style.color, linewidth=2.2, gid=gid)
        axes.plot(mean, row_number, "o", color=style.color, markersize=6, gid=gid)
        axes.plot(values, [row_number] * len(values), "o", color="black", markersize=1.8, gid=gid)
        if model in baselines:
            axes.axvline(mean, color=_GRAY, linewidth=1.0, linestyle="dashed", zorder=0, gid=gid)
    names = [f"{model} (baseline)" if model in baselines else model for model in scores]
    axes.set_yticks(range(len(scores)), names)
    axes.invert_yaxis()
    axes.grid(False, axis="y")
    first = next(row for row in rows if not row.error)
    bars = "95 % intervals over proteins" if intervals else "± s.d. over seeds"
    axes.set_xlabel(f"{split} {first.monitor}{_direction(first)}; {bars}")
    return figure


def _scores(rows: Sequence[BenchRow], split: str) -> dict[str, list[float]]:
    """Return the monitored metric on a split of each finished run that has it, by model."""
    scores: dict[str, list[float]] = {}
    for row in rows:
        value = row.metrics.get(split, {}).get(row.monitor, math.nan)
        if not row.error and not math.isnan(value):
            scores.setdefault(row.model, []).append(value)
    return scores


def _bar(values: Sequence[float], interval: BootstrapInterval | None) -> tuple[float, float, float]:
    """Return the mean over seeds and the ends of its bar."""
    mean = float(np.mean(values))
    if interval is not None and not math.isnan(interval.low):
        return mean, interval.low, interval.high
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return mean, mean - sd, mean + sd


def reliability_figure(curves: Mapping[str, Sequence[tuple[float, float, int]]], series: Mapping[str, int]) -> Figure:
    """Plot the fraction of positives by predicted probability; the diagonal is perfect calibration.

    Bins of fewer than 20 rows are open circles, which the line leaves out. ``curves`` has the mean probability,
    fraction of positives and number of rows of each bin.
    """
    figure, axes = _figure(4.4, 4.2)
    axes.plot([0, 1], [0, 1], color=_GRAY, linewidth=1.0, linestyle="dashed")
    for model, bins in curves.items():
        style = style_of(series[model])
        gid = _SERIES + model
        table = np.array(bins, float).reshape(-1, 3)
        has_many = table[:, 2] >= FEW_ROWS
        x, y = table[has_many, :2].T
        if len(x):
            axes.plot(x, y, marker="o", markersize=3.5, label=model, gid=gid, color=style.color, ls=style.dashes)
        x, y = table[~has_many, :2].T
        if len(x):
            axes.plot(x, y, "o", color=style.color, markersize=3.5, mfc="none", gid=gid)
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_xlabel("predicted probability")
    axes.set_ylabel("observed fraction")
    return figure


def ranks_figure(ranks: RankComparison, series: Mapping[str, int]) -> Figure:
    """Plot mean ranks with the critical difference; bars connect models that do not differ significantly.

    References
    ----------
    Demšar 2006, JMLR 7, 1–30, figure 1.
    """
    order = sorted(range(len(ranks.models)), key=lambda i: ranks.ranks[i])
    groups = ranks.groups()
    count = len(order)
    labels = [f" {ranks.models[i]} ({ranks.ranks[i]:.2f}) " for i in order]
    middle = (count + 1) // 2
    width = 6.4
    figure, axes = _figure(width, 0.9 + 0.12 * len(groups) + 0.24 * middle, layout=None)
    axes.set_position((0, 0, 1, 1))
    axes.set_axis_off()
    # The axis of ranks is between the labels of both sides; a letter of 8 points takes 0.07 inches.
    left = 0.07 * max(map(len, labels[:middle]), default=0)
    right = 0.07 * max(map(len, labels[middle:]), default=0)
    ranks_per_inch = (count - 0.6) / (width - left - right)
    axes.set_xlim(0.8 - left * ranks_per_inch, count + 0.2 + right * ranks_per_inch)
    # The axis of ranks at height 0; the critical difference above it.
    axes.plot([1, count], [0, 0], color=_GRAY, linewidth=1.0)
    for tick in range(1, count + 1):
        axes.plot([tick, tick], [0, 0.25], color=_GRAY, linewidth=1.0)
        axes.text(tick, 0.35, str(tick), ha="center", va="bottom", fontsize=8, color=_GRAY)
    end = min(1 + ranks.critical_difference, count)
    axes.plot([1, end], [1.9, 1.9], color="black", linewidth=3)
    axes.text(end + 0.05 * count, 1.9, f"CD {ranks.critical_difference:.2f}", va="center", fontsize=8, color=_GRAY)
    # Groups of models that do not differ, below the axis.
    rank_of = dict(zip(ranks.models, ranks.ranks, strict=True))
    for level, group in enumerate(groups):
        ranks_of_group = [rank_of[model] for model in group]
        height = -0.4 * (level + 1)
        ends = [min(ranks_of_group), max(ranks_of_group)]
        axes.plot(ends, [height, height], color="black", linewidth=3)
    # The better half is named on the left, the other one on the right.
    top = -0.4 * len(groups) - 0.8
    for number, i in enumerate(order):
        if number < middle:
            height = top - number
            edge = 0.8
            side = "right"
        else:
            height = top - (count - 1 - number)
            edge = count + 0.2
            side = "left"
        rank = ranks.ranks[i]
        color = style_of(series[ranks.models[i]]).color
        gid = _SERIES + ranks.models[i]
        axes.plot([rank, rank, edge], [0, height, height], color=color, linewidth=1.2, gid=gid)
        axes.text(edge, height, labels[number], ha=side, va="center", fontsize=8, gid=gid)
    return figure


def confusion_figure(counts: np.ndarray, title: str) -> Figure:
    """Plot the log-odds ``log₂ p(predicted | native) / p(predicted)`` of all pairs of types, as in BLOSUM.

    ``counts``: ``(20, 20)``, native types in rows, predicted types in columns, both in the order ACDEFGHIKLMNPQRSTVWY.

    References
    ----------
    Henikoff & Henikoff 1992, doi:10.1073/pnas.89.22.10915 (log-odds of substitutions).
    """
    order = [ALPHABET.index(letter) for letter in TYPE_ORDER]
    counts = counts[np.ix_(order, order)] + 0.5
    share = counts / counts.sum(1, keepdims=True)
    odds = np.log2(share / (counts.sum(0) / counts.sum()))
    figure, axes = _figure(5.6, 4.8)
    image = axes.imshow(odds, cmap="RdBu_r", vmin=-4, vmax=4)
    axes.grid(False)
    axes.set_xticks(range(20), list(TYPE_ORDER))
    axes.set_yticks(range(20), list(TYPE_ORDER))
    axes.set_xlabel("predicted")
    axes.set_ylabel("native")
    axes.set_title(title, loc="left", fontsize=9)
    figure.colorbar(image, label="log₂ odds", shrink=0.8)
    return figure


def make_figure(width: float, height: float, layout: Literal["constrained"] | None = "constrained") -> Figure:
    """Create an empty figure of this size in inches, without the global state of pyplot and without a display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout=layout)
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, path: str | Path) -> Path:
    """Write a figure in the format of the suffix, e.g. ".png"; missing folders are created."""
    path = Path(path)
    with atomic_write(path) as temporary:
        figure.savefig(temporary, dpi=_DPI, format=path.suffix.removeprefix("."))
    return path


def inline_svg(figure: Figure, label: str) -> str:
    """Return a figure as SVG for an HTML page, without its legend; the artists of a model have ``data-series``."""
    from matplotlib import rc_context

    for axes in figure.axes:
        legend = axes.get_legend()
        if legend is not None:
            legend.remove()
    text = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "protgraph"}):  # letters stay text; the same ids each time
        figure.savefig(text, format="svg", metadata={"Date": None})
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(rf'id="{_SERIES}([^"]*)"', r'data-series="\1"', svg)
    svg = re.sub(r' id="[A-Za-z.]+\d*_\d+"', "", svg)  # of parts: they would be the same in each figure
    width = figure.get_figwidth() * 96
    attributes = f'style="max-width:{width:.0f}px" role="img" aria-label="{escape(label)}"'
    return re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', attributes, svg, count=1)


def _figure(width: float, height: float, layout: Literal["constrained"] | None = "constrained") -> tuple[Figure, Axes]:
    """Create a figure with one panel and a grid."""
    figure = make_figure(width, height, layout)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color="#e6e9ed", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8)
    return figure, axes


def _direction(row: BenchRow) -> str:
    return " (lower is better)" if row.mode == "min" else ""
