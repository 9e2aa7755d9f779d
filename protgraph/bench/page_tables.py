"""Tables of the HTML report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np

from protgraph.bench.breakdown import GroupScore
from protgraph.bench.rows import BenchRow
from protgraph.bench.spec import PublishedScore
from protgraph.bench.statistics import CALIBRATION_ERROR, ScoreEstimate, SplitStatistics
from protgraph.bench.summary_table import Spread, Summary
from protgraph.train.bootstrap import percentile_interval

__all__ = ["breakdown_table", "pair_table", "published_table", "score_table", "seed_means_table"]

_AVERAGES = {"pooled": "", "proteins": ", per protein"}


def score_table(
    statistics: SplitStatistics,
    rows: Sequence[BenchRow],
    baselines: Sequence[str],
    published: Sequence[PublishedScore] = (),
) -> str:
    """Return the sortable table of one tested split: every metric of every model, and published rows."""
    estimates = {(e.model, e.metric, e.average): e for e in statistics.estimates}
    columns = list(dict.fromkeys((e.metric, e.average) for e in statistics.estimates))
    columns.sort(key=lambda c: (c[0] == CALIBRATION_ERROR, c[0] != statistics.monitor))
    columns += [(row.metric, "pooled") for row in published if (row.metric, "pooled") not in columns]
    modes = {(e.metric, e.average): e.mode for e in statistics.estimates}
    best = {c: _best([e for e in statistics.estimates if (e.metric, e.average) == c]) for c in columns}
    head = [_head("model", "ascending", text=True)]
    for metric, average in columns:
        mode = modes.get((metric, average), "max")
        name = f"{metric.replace('_', ' ')}{_AVERAGES[average]} {'↑' if mode == 'max' else '↓'}"
        head.append(_head(name, "descending" if mode == "max" else "ascending"))
    head += [_head("seeds"), _head("parameters", "ascending")]
    lines = []
    for model in statistics.models:
        cells = [_cell(estimates.get((model.model, *c)), is_best=best[c] == model.model) for c in columns]
        parameters = next(row.parameters for row in rows if row.model == model.model and not row.error)
        name = model.model + (" (baseline)" if model.model in baselines else "")
        cells += [_number(len(model.runs), "d"), _number(parameters, ",")]
        kind = ' class="baseline"' if model.model in baselines else ""
        lines.append(f"<tr{kind}><td>{escape(name)}</td>{''.join(cells)}</tr>")
    lines += [_published_line(row, [metric if a == "pooled" else "" for metric, a in columns], 2) for row in published]
    return _table(head, lines)


def seed_means_table(
    group: Sequence[Summary], split: str, baselines: Sequence[str], published: Sequence[PublishedScore] = ()
) -> str:
    """Return the sortable table of one split: the mean of every metric over seeds, and published rows.

    For tasks whose predictions per protein are not kept; :func:`score_table` needs them.
    The monitored metric of the split "test" has the interval over resampled proteins.
    """
    finished = [s for s in group if s.seeds]
    modes = finished[0].modes
    found = (metric for s in finished for metric in s.splits.get(split, {}))
    metrics = list(dict.fromkeys([finished[0].monitor, *found]))
    head = [_head("model", "ascending", text=True)]
    for metric in metrics:
        is_max = modes.get(metric, "max") == "max"
        name = f"{metric.replace('_', ' ')} {'↑' if is_max else '↓'}"
        head.append(_head(name, "descending" if is_max else "ascending"))
    head += [_head("seeds"), _head("parameters", "ascending")]
    scored = {m: [s for s in finished if not math.isnan(s.of(m, split).mean)] for m in metrics}
    best = {
        m: (min if modes.get(m) == "min" else max)(rows, key=lambda s, m=m: s.of(m, split).mean, default=None)
        for m, rows in scored.items()
    }
    lines = []
    for s in finished:
        cells = [_spread_cell(s, metric, split, is_best=best[metric] is s) for metric in metrics]
        kind, note = (' class="baseline"', " (baseline)") if s.model in baselines else ("", "")
        name = f"<td>{escape(s.model + note)}</td>"
        lines.append(f"<tr{kind}>{name}{''.join(cells)}{_number(s.seeds, 'd')}{_number(s.parameters, ',')}</tr>")
    return _table(head, [*lines, *(_published_line(row, metrics, 2) for row in published)])


def _spread_cell(summary: Summary, metric: str, split: str, *, is_best: bool) -> str:
    """Return the cell of a mean over seeds, with the interval over proteins if its samples are kept."""
    spread = summary.of(metric, split)
    if math.isnan(spread.mean):
        return '<td data-value="">–</td>'
    has_samples = metric == summary.monitor and split == "test" and len(summary.samples) > 0
    interval = percentile_interval(np.array(summary.samples)).text() if has_samples else ""
    kind = ' class="best"' if is_best else ""
    small = f"<small>{interval}</small>" if interval else ""
    return f'<td{kind} data-value="{spread.mean}">{spread.text()}{small}</td>'


def published_table(published: Sequence[PublishedScore]) -> str:
    """Return the sortable table of published scores and floors of one split, for a task without runs."""
    metrics = list(dict.fromkeys(row.metric for row in published))
    head = [_head("model", "ascending", text=True), *(_head(metric.replace("_", " ")) for metric in metrics)]
    return _table(head, [_published_line(row, metrics, 0) for row in published])


def _published_line(row: PublishedScore, metrics: Sequence[str], empty: int) -> str:
    """Return the line of a published score below columns of metrics, and of ``empty`` others."""
    nothing = '<td data-value="">–</td>'
    cells = [_number(row.value, ".3f") if metric == row.metric else nothing for metric in metrics]
    return (
        f'<tr class="published"><td title="{escape(row.source)}">{escape(row.method)}'
        f"<small>{escape(row.note)}</small></td>{''.join(cells)}{empty * nothing}</tr>"
    )


def pair_table(statistics: SplitStatistics) -> str:
    """Return the sortable table of all pairs of models."""
    head = [_head(name, "ascending", text=True) for name in ("metric", "model", "minus")]
    head += [_head("difference"), _head("95 % interval"), _head("p", "ascending"), _head("p, Holm", "ascending")]
    head.append(_head("proteins"))
    lines = []
    for pair in statistics.pairs:
        texts = "".join(f'<td class="text">{escape(text)}</td>' for text in (pair.metric, pair.one, pair.other))
        interval = f'<td data-value="{pair.interval.low}">{pair.interval.text()}</td>'
        p = _number(pair.p_value, ".2g") + _number(pair.p_holm, ".2g")
        lines.append(f"<tr>{texts}{_number(pair.difference, '+.3f')}{interval}{p}{_number(pair.proteins, 'd')}</tr>")
    return _table(head, lines)


def breakdown_table(groups: Sequence[GroupScore]) -> str:
    """Return the table of one attribute: a row per model, a column per group."""
    names = dict.fromkeys((g.group, g.proteins) for g in groups)
    values = {(g.model, g.group): g.score for g in groups}
    head = [_head("model", "ascending", text=True), *(_head(f"{name} ({count})") for name, count in names)]
    lines = [
        f"<tr><td>{escape(model)}</td>{''.join(_number(values[model, name], '.3f') for name, _ in names)}</tr>"
        for model in dict.fromkeys(g.model for g in groups)
    ]
    return _table(head, lines)


def _table(head: Sequence[str], lines: Sequence[str]) -> str:
    return (
        f'<div class="scroll"><table class="sortable"><thead><tr>{"".join(head)}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _head(name: str, first: str = "descending", *, text: bool = False) -> str:
    kind = ' class="text"' if text else ""
    return f'<th scope="col" data-first="{first}"{kind}>{escape(name)}</th>'


def _number(value: float, form: str) -> str:
    if math.isnan(value):
        return '<td data-value="">–</td>'
    text = f"{value:{form}}"
    if value != 0 and form.endswith("f") and float(text) == 0:  # a score in a small unit
        text = f"{value:{form[:-1]}g}"
    return f'<td data-value="{value}">{text}</td>'


def _cell(estimate: ScoreEstimate | None, *, is_best: bool) -> str:
    if estimate is None or math.isnan(estimate.mean):
        return '<td data-value="">–</td>'
    score = Spread(estimate.mean, estimate.sd).text()
    kind = ' class="best"' if is_best else ""
    return f'<td{kind} data-value="{estimate.mean}">{score}<small>{estimate.interval.text()}</small></td>'


def _best(estimates: Sequence[ScoreEstimate]) -> str:
    scored = [e for e in estimates if not math.isnan(e.mean)]
    if not scored:
        return ""
    return (min if scored[0].mode == "min" else max)(scored, key=lambda e: e.mean).model
