"""Tables of a benchmark: scores of models and of other methods, pairs of models, groups of proteins; CSV files."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any, NamedTuple

import numpy as np

from protgraph.bench.figures import TYPE_ORDER
from protgraph.bench.published import PublishedScore
from protgraph.bench.run_predictions import resample_mean
from protgraph.bench.statistics import CALIBRATION_ERROR, GroupScore, ScoreEstimate, SplitStatistics
from protgraph.bench.summaries import Spread, Summary, by_task
from protgraph.evaluation.bootstrap import percentile_interval
from protgraph.structure.residues.alphabet import ALPHABET

__all__ = [
    "Table",
    "breakdown_table",
    "confusion_table",
    "csv_table",
    "estimates_csv",
    "markdown_table",
    "pair_table",
    "pairs_csv",
    "published_table",
    "score_table",
]

_AVERAGES = {"pooled": "", "proteins": ", per protein", "clusters": ", per cluster"}
_ARROWS = {"max": "↑", "min": "↓"}


class Column(NamedTuple):
    """Heading of a column, and the order in which a first click sorts it."""

    title: str
    first: str = "descending"
    is_text: bool = False


class Cell(NamedTuple):
    """Text of a cell, the value by which it is sorted, and a small line below the text."""

    text: str = "–"
    value: float | str = ""
    note: str = ""
    is_best: bool = False
    is_text: bool = False
    tooltip: str = ""


@dataclass
class Table:
    """Columns and rows; a row has a kind, "", "baseline" or "published", and cells."""

    columns: list[Column]
    rows: list[tuple[str, list[Cell]]]

    def html(self) -> str:
        """Return the table for the page of the report, whose script sorts it."""
        head = []
        for title, first, is_text in self.columns:
            kind = ' class="text"' if is_text else ""
            head.append(f'<th scope="col" data-first="{first}"{kind}>{escape(title)}</th>')
        lines = []
        for kind, cells in self.rows:
            row = f'<tr class="{kind}">' if kind else "<tr>"
            lines.append(f"{row}{''.join(map(_html_cell, cells))}</tr>")
        return (
            f'<div class="scroll"><table class="sortable"><thead><tr>{"".join(head)}</tr></thead>'
            f"<tbody>{''.join(lines)}</tbody></table></div>"
        )

    def markdown(self) -> str:
        """Return the table as Markdown, the best values bold."""
        titles = [column.title for column in self.columns]
        rules = ["---"] + ["---:"] * (len(titles) - 1)
        rows = [titles, rules]
        for _, cells in self.rows:
            rows.append([f"**{cell.text}**" if cell.is_best else cell.text for cell in cells])
        lines = [f"| {' | '.join(texts)} |" for texts in rows]
        return "\n".join(lines)


def _html_cell(cell: Cell) -> str:
    attributes = ""
    if cell.is_best:
        attributes += ' class="best"'
    elif cell.is_text:
        attributes += ' class="text"'
    if cell.tooltip:
        attributes += f' title="{escape(cell.tooltip)}"'
    if not cell.is_text:
        attributes += f' data-value="{escape(str(cell.value))}"'
    note = f"<small>{escape(cell.note)}</small>" if cell.note else ""
    return f"<td{attributes}>{escape(cell.text)}{note}</td>"


def _name(name: str, *, note: str = "", tooltip: str = "") -> Cell:
    return Cell(name, name, note, is_text=True, tooltip=tooltip)


def _number(value: float, form: str = ".3f") -> Cell:
    if math.isnan(value):
        return Cell()
    text = f"{value:{form}}"
    rounds_to_zero = form.endswith("f") and float(text) == 0
    if value != 0 and rounds_to_zero:  # a score in a small unit
        text = f"{value:{form[:-1]}g}"
    return Cell(text, value)


def _metric_column(metric: str, mode: str, suffix: str = "") -> Column:
    title = f"{metric.replace('_', ' ')}{suffix} {_ARROWS[mode]}"
    return Column(title, "descending" if mode == "max" else "ascending")


def _best(means: Mapping[str, float], mode: str | None) -> str:
    defined = {model: mean for model, mean in means.items() if not math.isnan(mean)}
    if mode is None or not defined:
        return ""
    if mode == "min":
        return min(defined, key=defined.__getitem__)
    return max(defined, key=defined.__getitem__)


def score_table(
    group: Sequence[Summary],
    split: str,
    baselines: Sequence[str],
    published: Sequence[PublishedScore] = (),
    estimates: Sequence[ScoreEstimate] = (),
) -> Table:
    """Return the table of one tested split: every metric of every model, and published rows.

    Without ``estimates``, the means over seeds of ``group`` are shown.
    """
    finished = [s for s in group if s.seeds]
    scores, modes = _scores(finished, split, estimates)
    columns = _score_columns(scores, finished[0].monitor, published)
    # headings, and the best model of each column
    best = {}
    heads = [Column("model", "ascending", True)]
    for metric, average in columns:
        mode = modes.get((metric, average), "max")
        best[metric, average] = _best(_means(scores, (metric, average)), mode)
        heads.append(_metric_column(metric, mode, _AVERAGES[average]))
    heads += [Column("seeds"), Column("parameters", "ascending")]

    rows = []
    for s in finished:
        is_baseline = s.model in baselines
        cells = [_name(f"{s.model} (baseline)" if is_baseline else s.model)]
        scores_of_model = scores.get(s.model, {})
        for column in columns:
            cells.append(_score_cell(scores_of_model.get(column), is_best=best[column] == s.model))
        cells += [_number(s.seeds, "d"), _number(s.parameters, ",")]
        rows.append(("baseline" if is_baseline else "", cells))
    # published scores are pooled: the columns of other averages stay empty
    names = [metric if average == "pooled" else "" for metric, average in columns]
    rows += [_published_row(row, names, 2) for row in published]
    return Table(heads, rows)


def _means(
    scores: Mapping[str, Mapping[tuple[str, str], tuple[Spread, str]]], column: tuple[str, str]
) -> dict[str, float]:
    """Return the mean of each model that has a score of this (metric, average)."""
    return {model: cells[column][0].mean for model, cells in scores.items() if column in cells}


def _score_cell(score: tuple[Spread, str] | None, *, is_best: bool) -> Cell:
    """Return the cell of a spread with its interval; an empty one without a defined mean."""
    if score is None or math.isnan(score[0].mean):
        return Cell()
    spread, interval = score
    return Cell(spread.text(), spread.mean, interval, is_best=is_best)


def _score_columns(
    scores: Mapping[str, Mapping[tuple[str, str], tuple[Spread, str]]],
    monitor: str,
    published: Sequence[PublishedScore],
) -> list[tuple[str, str]]:
    """Return (metric, average) of each column: the monitored metric first, the calibration error last, then published.

    A published metric has a column of its own if no model has it.
    """
    columns: dict[tuple[str, str], None] = {}  # each once, in order of appearance
    for cells in scores.values():
        columns |= dict.fromkeys(cells)
    ordered = sorted(columns, key=lambda column: (column[0] == CALIBRATION_ERROR, column[0] != monitor))
    for row in published:
        if (row.metric, "pooled") not in columns:
            ordered.append((row.metric, "pooled"))
    return ordered


def _scores(
    finished: Sequence[Summary], split: str, estimates: Sequence[ScoreEstimate]
) -> tuple[dict[str, dict[tuple[str, str], tuple[Spread, str]]], dict[tuple[str, str], str]]:
    """Return model → (metric, average) → spread and interval, and the better direction of each metric."""
    scores: dict[str, dict[tuple[str, str], tuple[Spread, str]]] = {}
    modes: dict[tuple[str, str], str] = {}
    for e in estimates:
        scores.setdefault(e.model, {})[e.metric, e.average] = Spread(e.mean, e.sd), e.interval.text()
        modes[e.metric, e.average] = e.mode
    if estimates:
        return scores, modes
    for s in finished:
        spreads = s.splits.get(split, {})
        scores[s.model] = {(metric, "pooled"): (spread, "") for metric, spread in spreads.items()}
        if split == "test" and s.protein_scores and s.monitor in spreads:
            interval = percentile_interval(resample_mean(np.array(s.protein_scores)))
            scores[s.model][s.monitor, "pooled"] = spreads[s.monitor], f"{interval.text()}, mean over proteins"
        modes |= {(metric, "pooled"): s.modes.get(metric, "max") for metric in spreads}
    return scores, modes


def published_table(published: Sequence[PublishedScore]) -> Table:
    """Return the table of published scores and floors of one split, for a task without runs."""
    metrics = list(dict.fromkeys(row.metric for row in published))
    columns = [Column("model", "ascending", True)]
    columns += [Column(metric.replace("_", " ")) for metric in metrics]
    return Table(columns, [_published_row(row, metrics, 0) for row in published])


def _published_row(row: PublishedScore, metrics: Sequence[str], empty: int) -> tuple[str, list[Cell]]:
    """Return the row of a published score below columns of metrics, and of ``empty`` others."""
    cells = [_number(row.value) if metric == row.metric else Cell() for metric in metrics]
    return "published", [_name(row.method, note=row.note, tooltip=row.source), *cells, *[Cell()] * empty]


def pair_table(statistics: SplitStatistics) -> Table:
    """Return the table of all pairs of models."""
    columns = [
        Column("metric", "ascending", True),
        Column("model", "ascending", True),
        Column("minus", "ascending", True),
        Column("difference"),
        Column("95 % interval"),
        Column("p", "ascending"),
        Column("p, Holm", "ascending"),
        Column("proteins"),
    ]
    rows = []
    for pair in statistics.pairs:
        cells = [
            _name(pair.metric),
            _name(pair.one),
            _name(pair.other),
            _number(pair.difference, "+.3f"),
            Cell(pair.interval.text(), pair.interval.low),
            _number(pair.p_value, ".2g"),
            _number(pair.p_holm, ".2g"),
            _number(pair.proteins, "d"),
        ]
        rows.append(("", cells))
    return Table(columns, rows)


def breakdown_table(groups: Sequence[GroupScore]) -> Table:
    """Return the table of one attribute: a row per model, a column per group."""
    count_of = {g.group: g.proteins for g in groups}
    columns = [Column("model", "ascending", True)]
    columns += [Column(f"{name} ({count})") for name, count in count_of.items()]
    scores = {(g.model, g.group): g.score for g in groups}
    rows = []
    for model in dict.fromkeys(g.model for g in groups):
        cells = [_number(scores[model, name]) for name in count_of]
        rows.append(("", [_name(model), *cells]))
    return Table(columns, rows)


def confusion_table(counts: np.ndarray) -> Table:
    """Return the recovery of each native type and its most frequent confusion.

    ``counts (20, 20)`` has the native type in rows and the predicted one in columns.
    """
    rows = []
    for letter in TYPE_ORDER:
        native = ALPHABET.index(letter)
        total = int(counts[native].sum())
        recovery = counts[native, native] / total if total else math.nan
        wrong = counts[native].copy()
        wrong[native] = 0
        confusion = ""
        if wrong.any():
            confusion = f"{ALPHABET[int(wrong.argmax())]} ({wrong.max() / total:.2f})"
        rows.append(("", [_name(letter), _number(total, "d"), _number(recovery), _name(confusion)]))
    columns = [
        Column("type", "ascending", True),
        Column("residues"),
        Column("recovery"),
        Column("most frequent confusion", "ascending", True),
    ]
    return Table(columns, rows)


def markdown_table(summaries: Sequence[Summary], baselines: Sequence[str] = ()) -> str:
    """Return one table per task: test metrics as mean ± s.d. over seeds, the best in bold, baselines marked.

    Other splits have a column for the monitored metric only.
    """
    tables = []
    for task, group in by_task(summaries).items():
        tables.append(f"### {task}\n\n{_summary_table(group, baselines).markdown()}")
    return "\n\n".join(tables)


def _summary_table(group: Sequence[Summary], baselines: Sequence[str]) -> Table:
    modes = next((s.modes for s in group if s.modes), {})
    columns = _summary_columns(group)
    titles = []
    best = []
    for metric, split in columns:
        name = metric if split == "test" else f"{split} {metric}"
        titles.append(f"{name} {_ARROWS[modes[name]]}" if name in modes else name)
        if split == "test":
            best.append(_best({s.model: s.of(metric).mean for s in group}, modes.get(metric)))
        else:
            best.append("")
    rows = []
    for s in group:
        cells = [_name(f"{s.model} (baseline)" if s.model in baselines else s.model)]
        for (metric, split), best_model in zip(columns, best, strict=True):
            spread = s.of(metric, split)
            cells.append(Cell(spread.text(), spread.mean, is_best=s.model == best_model))
        rows.append(("", [*cells, *_cost_cells(s)]))
    heads = ["model", *titles, "seeds", "parameters", "residues per second", "memory, MiB", "seconds per run"]
    return Table([Column(head) for head in heads], rows)


def _summary_columns(group: Sequence[Summary]) -> list[tuple[str, str]]:
    """Return metric and split of each column: the test metrics, the monitored one first, then it on other splits."""
    monitor = next((s.monitor for s in group if s.monitor), "")
    metrics = dict.fromkeys([monitor] if monitor else [])
    other_splits: dict[str, None] = {}
    for s in group:
        metrics |= dict.fromkeys(s.splits["test"])
        if s.seeds:
            other_splits |= dict.fromkeys(split for split in s.splits if split != "test")
    return [(metric, "test") for metric in metrics] + [(monitor, split) for split in other_splits]


def _cost_cells(summary: Summary) -> list[Cell]:
    """Return the cells of runs, parameters, speed, memory and time of a model."""
    seeds = str(summary.seeds)
    if summary.failed:
        seeds += f" ({summary.failed} failed)"
    parameters = f"{summary.parameters:,}" if summary.seeds else "–"
    costs = (summary.residues_per_second, summary.peak_memory_mib, summary.seconds)
    return [Cell(seeds), Cell(parameters), *(Cell(_rounded(cost.mean)) for cost in costs)]


def _rounded(value: float) -> str:
    if math.isnan(value):
        return "–"
    return f"{value:.1f}" if value < 10 else f"{value:,.0f}"


def csv_table(summaries: Sequence[Summary], baselines: Sequence[str] = ()) -> str:
    """Return CSV with one line per model and task, in full precision.

    Columns of metrics are ``<split>_<metric>_mean`` and ``<split>_<metric>_sd``.
    """
    columns: dict[str, None] = {}
    lines = []
    for s in summaries:
        line: dict[str, Any] = {
            "dataset": s.dataset,
            "task": s.task,
            "model": s.model,
            "baseline": int(s.model in baselines),
            "seeds": s.seeds,
            "failed": s.failed,
            "monitor": s.monitor,
            "mode": s.modes.get(s.monitor, ""),
            "parameters": s.parameters if s.seeds else "",
        }
        spreads = {}
        for split, metrics in s.splits.items():
            for metric, spread in metrics.items():
                spreads[f"{split}_{metric}"] = spread
        spreads["residues_per_second"] = s.residues_per_second
        spreads["peak_memory_mib"] = s.peak_memory_mib
        spreads["seconds_per_run"] = s.seconds
        for name, spread in spreads.items():
            line |= {f"{name}_mean": spread.mean, f"{name}_sd": spread.sd}
        lines.append(line)
        columns |= dict.fromkeys(line)
    return _csv(list(columns), lines)


_PLACE = ("dataset", "task", "split")
_ESTIMATES = (*_PLACE, "model", "metric", "average", "mode", "mean", "sd", "low", "high", "proteins")
_PAIRS = (*_PLACE, "metric", "model", "minus", "difference", "low", "high", "p_value", "p_holm", "proteins")


def estimates_csv(statistics: Sequence[SplitStatistics]) -> str:
    """Return one line per task, split, model, metric and average, in full precision."""
    lines = []
    for split in statistics:
        for estimate in split.estimates:
            lines.append({**_place(split), **asdict(estimate), **asdict(estimate.interval)})
    return _csv(_ESTIMATES, lines)


def pairs_csv(statistics: Sequence[SplitStatistics]) -> str:
    """Return one line per task, split, metric and pair of models, in full precision."""
    lines = []
    for split in statistics:
        for pair in split.pairs:
            names = {"model": pair.one, "minus": pair.other}
            lines.append({**_place(split), **asdict(pair), **asdict(pair.interval), **names})
    return _csv(_PAIRS, lines)


def _place(split: SplitStatistics) -> dict[str, str]:
    return {"dataset": split.dataset, "task": split.task, "split": split.split}


def _csv(columns: Sequence[str], lines: Iterable[Mapping[str, Any]]) -> str:
    """Return CSV with these columns of each line; NaN is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for line in lines:
        cells = dict(line)
        for name, value in line.items():
            if isinstance(value, float) and math.isnan(value):
                cells[name] = ""
        writer.writerow(cells)
    return text.getvalue()
