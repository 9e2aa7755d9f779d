"""Charts of the HTML report as inline SVG: learning curves, intervals, reliability and mean ranks.

Not plotly: 4.7 MB of JavaScript in each page (plotly 7.1.0, 2026-11-23); these charts are a few kB and print well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from statistics import fmean

import numpy as np

from protgraph.bench.paired_tests import RankComparison
from protgraph.bench.rows import BenchRow
from protgraph.bench.statistics import ScoreEstimate

__all__ = ["COLORS", "FEW_ROWS", "curves_chart", "interval_chart", "rank_chart", "reliability_chart"]

#: Bins of fewer rows are left out of the line of a reliability chart.
FEW_ROWS = 20
#: Okabe & Ito 2008, color-blind safe, light yellow darkened; then the same with dashes.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B87A00", "#3A96C9", "#857400", "#444444")
_DASHES = ("", "6 3", "2 3", "8 3 2 3")
_WIDTH, _HEIGHT = 560, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 16, 14, 44
_LETTER = 9  # width of a letter in wide fonts


class _Axes:
    """Linear map of data to a plot area, with a frame, ticks and labels."""

    def __init__(
        self, x: tuple[float, float], y: tuple[float, float], *, width: int = _WIDTH, height: int = _HEIGHT
    ) -> None:
        self.x0, self.x1 = x
        self.y0, self.y1 = y
        self.width, self.height = width, height

    def px(self, x: float) -> float:
        """Return the horizontal place of a value."""
        return round(_LEFT + (x - self.x0) / (self.x1 - self.x0) * (self.width - _LEFT - _RIGHT), 2)

    def py(self, y: float) -> float:
        """Return the vertical place of a value."""
        return round(self.height - _BOTTOM - (y - self.y0) / (self.y1 - self.y0) * (self.height - _TOP - _BOTTOM), 2)

    def frame(self, x_label: str, y_label: str, *, y_ticks: bool = True, integer_x: bool = False) -> str:
        """Return grid lines, tick labels and the names of the axes; with integer_x at whole numbers only."""
        parts, bottom = [], self.height - _BOTTOM
        for value in _ticks(self.x0, self.x1):
            if integer_x and value != int(value):
                continue
            x = self.px(value)
            parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{_TOP}" y2="{bottom}"/>')
            parts.append(f'<text class="tick" x="{x}" y="{bottom + 16}" text-anchor="middle">{value:g}</text>')
        for value in _ticks(self.y0, self.y1) if y_ticks else ():
            y = self.py(value)
            parts.append(f'<line class="grid" x1="{_LEFT}" x2="{self.width - _RIGHT}" y1="{y}" y2="{y}"/>')
            parts.append(f'<text class="tick" x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{value:g}</text>')
        middle = (_LEFT + self.width - _RIGHT) / 2
        parts.append(f'<text x="{middle}" y="{self.height - 8}" text-anchor="middle">{escape(x_label)}</text>')
        turned = f"translate(13 {(_TOP + bottom) / 2}) rotate(-90)"
        parts.append(f'<text transform="{turned}" text-anchor="middle">{escape(y_label)}</text>')
        return "".join(parts)

    def path(self, points: Sequence[tuple[float, float]]) -> str:
        """Return the ``d`` of a line through points; those without a value are left out."""
        return "M" + "L".join(f"{self.px(x)} {self.py(y)}" for x, y in points if math.isfinite(y))


def style_of(index: int) -> tuple[str, str]:
    """Return color and dashes of a series."""
    return COLORS[index % len(COLORS)], _DASHES[index // len(COLORS) % len(_DASHES)]


def curves_chart(rows: Sequence[BenchRow], series: Mapping[str, int]) -> str:
    """Draw the monitored validation metric by epoch: mean over seeds, band of ± one standard deviation.

    Parameters
    ----------
    rows : sequence of BenchRow
        Rows of one task.
    series : mapping of str to int
        Model → index of its color.

    Returns
    -------
    str
        SVG; empty if no run has two epochs.
    """
    curves: dict[str, list[np.ndarray]] = {}
    for row in rows:
        values = np.array([point.get(row.monitor, math.nan) for point in row.history])
        if not row.error and len(values) > 1 and not np.isnan(values).all():  # undefined for a constant prediction
            curves.setdefault(row.model, []).append(values)
    if not curves:
        return ""
    everything = np.concatenate([values for runs in curves.values() for values in runs])
    longest = max(len(values) for runs in curves.values() for values in runs)
    axes = _Axes((1, longest), _span(everything))
    label = f"validation {next(row.monitor for row in rows if not row.error)}"
    parts = [axes.frame("epoch", label, integer_x=True)]
    for model, runs in curves.items():
        color, dash = style_of(series[model])
        shared = min(len(values) for values in runs)
        stack = np.stack([values[:shared] for values in runs])
        mean, sd = stack.mean(0), stack.std(0, ddof=1) if len(runs) > 1 else np.zeros(shared)
        upper = [(e + 1, float(v)) for e, v in enumerate(mean + sd)]
        lower = [(e + 1, float(v)) for e, v in enumerate(mean - sd)]
        band = f'<path class="band" fill="{color}" d="{axes.path(upper + lower[::-1])}Z"/>' if len(runs) > 1 else ""
        line = axes.path([(e + 1, float(v)) for e, v in enumerate(mean)])
        parts.append(
            f'<g data-series="{escape(model)}">{band}'
            f'<path class="line" stroke="{color}" stroke-dasharray="{dash}" d="{line}"/></g>'
        )
    return _svg(parts, axes, f"Learning curves of {len(curves)} models")


def interval_chart(estimates: Sequence[ScoreEstimate], series: Mapping[str, int]) -> str:
    """Draw the mean and the 95 % interval of one metric for each model."""
    shown = [one for one in estimates if not math.isnan(one.mean)]
    if not shown:
        return ""
    values = [v for one in shown for v in (one.mean, one.interval.low, one.interval.high) if not math.isnan(v)]
    height = _TOP + _BOTTOM + 26 * len(shown)
    axes = _Axes(_span(np.array(values)), (len(shown) - 0.5, -0.5), height=height)
    axes.y0, axes.y1 = len(shown) - 0.5, -0.5
    left = 16 + _LETTER * max(len(one.model) for one in shown)
    parts = [axes.frame(f"test {shown[0].metric}, 95 % interval over proteins", "", y_ticks=False)]
    for i, one in enumerate(shown):
        color, _ = style_of(series[one.model])
        y, x = axes.py(i), axes.px(one.mean)
        low, high = (one.mean if math.isnan(v) else v for v in (one.interval.low, one.interval.high))
        parts.append(
            f'<g data-series="{escape(one.model)}"><line x1="{axes.px(low)}" x2="{axes.px(high)}" y1="{y}" y2="{y}" '
            f'stroke="{color}" stroke-width="2.5"/><circle cx="{x}" cy="{y}" r="4.5" fill="{color}"/>'
            f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{escape(one.model)}</text></g>'
        )
    return _svg(parts, axes, f"Intervals of {shown[0].metric}", left=max(0, left - _LEFT))


def reliability_chart(curves: Mapping[str, Sequence[tuple[float, float, int]]], series: Mapping[str, int]) -> str:
    """Draw the fraction of positives by predicted probability; the diagonal is perfect calibration.

    Bins of fewer than 20 rows are open circles, which the line leaves out.

    Parameters
    ----------
    curves : mapping of str to sequence of (float, float, int)
        Model → mean probability, fraction of positives and number of rows of each bin.
    series : mapping of str to int
        Model → index of its color.
    """
    axes = _Axes((0.0, 1.0), (0.0, 1.0), width=380, height=360)
    parts = [axes.frame("predicted probability", "observed fraction")]
    parts.append(f'<path class="diagonal" d="{axes.path([(0, 0), (1, 1)])}"/>')
    for model, points in curves.items():
        color, dash = style_of(series[model])
        dots = "".join(
            f'<circle cx="{axes.px(p)}" cy="{axes.py(f)}" r="3" {_dot(color, n)}><title>{escape(model)}: {n} rows, '
            f"predicted {p:.3f}, observed {f:.3f}</title></circle>"
            for p, f, n in points
        )
        counted = [(p, f) for p, f, n in points if n >= FEW_ROWS]
        line = axes.path(counted) if counted else ""
        parts.append(
            f'<g data-series="{escape(model)}"><path class="line" stroke="{color}" stroke-dasharray="{dash}" '
            f'd="{line}"/>{dots}</g>'
        )
    return _svg(parts, axes, "Reliability of predicted probabilities")


def _dot(color: str, rows: int) -> str:
    """Return the attributes of the dot of a bin."""
    return f'fill="{color}"' if rows >= FEW_ROWS else f'fill="none" stroke="{color}"'


def rank_chart(ranks: RankComparison, series: Mapping[str, int]) -> str:
    """Draw mean ranks with the critical difference; bars connect models that do not differ significantly.

    References
    ----------
    Demšar 2006, JMLR 7, 1–30, figure 1.
    """
    order = sorted(range(len(ranks.models)), key=lambda i: ranks.ranks[i])
    groups, count = ranks.groups(), len(order)
    top = 64 + 10 * len(groups)
    height = top + 22 * ((count + 1) // 2) + 12
    left = right = 40 + 7 * max(len(model) + 7 for model in ranks.models)
    width = 260 + left + right

    def place(rank: float) -> float:
        return round(left + (rank - 1) / max(count - 1, 1) * (width - left - right), 2)

    parts = [f'<line class="axis" x1="{place(1)}" x2="{place(count)}" y1="44" y2="44"/>']
    for rank in range(1, count + 1):
        parts.append(f'<line class="axis" x1="{place(rank)}" x2="{place(rank)}" y1="39" y2="44"/>')
        parts.append(f'<text class="tick" x="{place(rank)}" y="34" text-anchor="middle">{rank}</text>')
    end = place(min(1 + ranks.critical_difference, count))
    parts.append(f'<line class="bar" x1="{place(1)}" x2="{end}" y1="10" y2="10"/>')
    parts.append(f'<text class="tick" x="{end + 6}" y="14">CD {ranks.critical_difference:.2f}</text>')
    rank_of = dict(zip(ranks.models, ranks.ranks, strict=True))
    for i, group in enumerate(groups):
        y, ends = 54 + 10 * i, sorted(place(rank_of[model]) for model in group)
        parts.append(f'<line class="bar" x1="{ends[0] - 3}" x2="{ends[-1] + 3}" y1="{y}" y2="{y}"/>')
    for k, i in enumerate(order):
        is_left = k < (count + 1) // 2
        y = top + 22 * (k if is_left else count - 1 - k) + 8
        x, model = place(ranks.ranks[i]), ranks.models[i]
        edge, anchor = (left - 10, "end") if is_left else (width - right + 10, "start")
        color, _ = style_of(series[model])
        parts.append(
            f'<g data-series="{escape(model)}"><path class="line" stroke="{color}" d="M{x} 44V{y}H{edge}"/>'
            f'<text x="{edge + (-5 if is_left else 5)}" y="{y + 4}" text-anchor="{anchor}">{escape(model)} '
            f"({ranks.ranks[i]:.2f})</text></g>"
        )
    return (
        f'<svg viewBox="0 0 {width} {height}" style="max-width:{width}px" role="img" '
        'aria-label="Mean ranks and critical difference">'
        f"{''.join(parts)}</svg>"
    )


def _svg(parts: Sequence[str], axes: _Axes, label: str, *, left: int = 0) -> str:
    box = f"{-left} 0 {axes.width + left} {axes.height}"
    style = f"max-width:{axes.width + left}px"
    return f'<svg viewBox="{box}" style="{style}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'


def _span(values: np.ndarray) -> tuple[float, float]:
    """Return the limits of the finite values with a margin of 5 %."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 1.0)
    margin = (high - low or abs(fmean([low, high])) or 1.0) * 0.05
    return low - margin, high + margin


def _ticks(low: float, high: float) -> list[float]:
    """Return about five round values between two limits."""
    low, high = min(low, high), max(low, high)
    step = 10 ** math.floor(math.log10((high - low) / 5))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= 6)
    first = math.ceil(low / step - 1e-9)
    digits = 10 - math.floor(math.log10(step))
    return [round(k * step, digits) for k in range(first, math.floor(high / step + 1e-9) + 1)]
