"""Write the results of a benchmark as one HTML page that needs no network: tables, charts and proteins in 3D."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from protgraph.bench.breakdown import GroupScore, break_down
from protgraph.bench.job_plan import has_training_split
from protgraph.bench.page_charts import (
    FEW_ROWS,
    curves_chart,
    interval_chart,
    rank_chart,
    reliability_chart,
    style_of,
)
from protgraph.bench.page_proteins import ProteinBoxes
from protgraph.bench.page_tables import breakdown_table, pair_table, published_table, score_table, seed_means_table
from protgraph.bench.protein_view import best_model, view_proteins
from protgraph.bench.published import reference_scores
from protgraph.bench.rows import BenchRow
from protgraph.bench.spec import BenchSpec
from protgraph.bench.statistics import SplitStatistics
from protgraph.bench.summary_table import summarize
from protgraph.data.datasets.dataset import Dataset
from protgraph.file_io import write_text_file
from protgraph.wording import count_noun

__all__ = ["write_html"]

_RELIABILITY_NOTE = f'<p class="quiet">Open circles: bins of fewer than {FEW_ROWS} rows.</p>'


def write_html(
    spec: BenchSpec, rows: Sequence[BenchRow], statistics: Sequence[SplitStatistics], versions: Mapping[str, Any]
) -> Path:
    """Write ``report.html`` into the folder of the benchmark.

    Parameters
    ----------
    spec : BenchSpec
    rows : sequence of BenchRow
    statistics : sequence of SplitStatistics
        One per task and tested split.
    versions : mapping
        Result of :func:`protgraph.bench.environment.environment`.

    Returns
    -------
    Path
    """
    names = dict.fromkeys(name for task in spec.tasks for name in spec.rows_of(task))
    series = {model: i for i, model in enumerate(names)}
    proteins = ProteinBoxes()
    sections = [_task_section(spec, rows, statistics, task, series, proteins) for task in spec.tasks]
    links = "".join(f'<a href="#task-{i}">{escape(task)}</a>' for i, task in enumerate(spec.tasks))
    body = [
        f"<h1>Benchmark {escape(spec.name)}</h1>",
        f"<p>{_intro(spec, rows)}</p>",
        f'<nav>{links}<a href="#methods">methods</a><a href="#versions">spec and versions</a></nav>',
        *sections,
        _failed(rows, spec.optional),
        _METHODS,
        _versions(spec, versions),
        proteins.shared(),
        f"<script>{_file('page_script.js')}</script>",
    ]
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>Benchmark {escape(spec.name)}</title><link rel="icon" href="data:,">'
        f"<style>{_file('page_style.css')}</style>"
    )
    page = f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{"".join(body)}</body></html>\n'
    path = spec.folder / "report.html"
    write_text_file(path, page)
    return path


def _file(name: str) -> str:
    return resources.files("protgraph.bench").joinpath(name).read_text(encoding="utf-8")


def _intro(spec: BenchSpec, rows: Sequence[BenchRow]) -> str:
    minutes = sum(row.seconds for row in rows if not math.isnan(row.seconds)) / 60
    parts = [count_noun(len(getattr(spec, key)), key.removesuffix("s")) for key in ("models", "tasks", "seeds")]
    return f"{' × '.join(parts)}: {count_noun(len(rows), 'run')}, {minutes:.1f} worker minutes."


def _task_section(
    spec: BenchSpec,
    rows: Sequence[BenchRow],
    statistics: Sequence[SplitStatistics],
    task: str,
    series: Mapping[str, int],
    proteins: ProteinBoxes,
) -> str:
    own = [row for row in rows if row.task == task]
    parts = [f'<section id="task-{spec.tasks.index(task)}"><h2>{escape(task)}</h2>', _legend(own, series)]
    if curves := curves_chart(own, series):
        parts.append(f'<div class="charts">{_figure("Learning curves", curves)}</div>')
    found = [one for one in statistics if one.task == task]
    dataset = spec.data(task)
    if not has_training_split(dataset, task):
        parts.append(f'<p class="quiet">{escape(dataset.name)} has no training split: {_train_on(dataset)}.</p>')
    if not own:
        parts += _card_tables(spec, task, dataset)
    elif not found:
        parts += _summary_tables(spec, own, dataset)
    for one in found:
        parts += _split_parts(spec, own, one, series, proteins)
    return "".join([*parts, "</section>"])


def _legend(rows: Sequence[BenchRow], series: Mapping[str, int]) -> str:
    """Return one button per model with a finished run; the script hides and shows its series."""
    buttons = []
    for model in dict.fromkeys(row.model for row in rows if not row.error):
        color, dash = style_of(series[model])
        line = f"border-color:{color};border-top-style:{'dashed' if dash else 'solid'}"
        buttons.append(
            f'<button type="button" aria-pressed="true" data-toggle="{escape(model)}"><i style="{line}"></i>'
            f"{escape(model)}</button>"
        )
    return f'<div class="legend">{"".join(buttons)}</div>'


def _split_parts(
    spec: BenchSpec,
    rows: Sequence[BenchRow],
    one: SplitStatistics,
    series: Mapping[str, int],
    proteins: ProteinBoxes,
) -> list[str]:
    dataset = spec.data(one.task)
    examples = dataset.examples(one.task)
    resolutions = {e.id: e.resolution for e in examples if e.resolution is not None}
    published = [row for row in reference_scores(one.task, dataset, spec.published) if row.split == one.split]
    title = f"{one.split}: {count_noun(len(one.names), 'protein')} of {one.dataset}"
    parts = [f"<h3>{escape(title)}</h3>", score_table(one, rows, spec.baselines, published)]
    charts = [("Test scores", interval_chart(_monitored(one), series))]
    curves = {m.model: c.curve() for m in one.models if (c := m.reliability()) is not None}
    charts += [("Reliability", reliability_chart(curves, series) + _RELIABILITY_NOTE)] if curves else []
    charts += [("Mean ranks over proteins", rank_chart(one.ranks, series) + _rank_note(one))] if one.ranks else []
    parts.append(f'<div class="charts">{"".join(_figure(*chart) for chart in charts if chart[1])}</div>')
    if one.pairs:
        parts.append(f"<details><summary>Paired tests</summary>{pair_table(one)}</details>")
    if one.undefined:
        names = "; ".join(f"{model}: {', '.join(metrics)}" for model, metrics in one.undefined.items())
        parts.append(f"<p>Undefined (–), in no interval, rank or paired test: {escape(names)}.</p>")
    if one.left_out:
        parts.append(f"<p>Other proteins or labels, in no paired test: {escape(', '.join(one.left_out))}.</p>")
    known = sum(name in resolutions for name in one.names)
    parts.append(_breakdown(break_down(one, resolutions), f"{known} of {count_noun(len(one.names), 'protein')}"))
    views, note = view_proteins(one, dataset)
    if views:
        parts.append(f"<h3>Best and worst proteins of {escape(best_model(one).model)}, {escape(one.split)}</h3>")
        parts.append(proteins.boxes(views, one.monitor))
    parts.append(f'<p class="quiet">{escape(note)}</p>' if note else "")
    return parts


def _summary_tables(spec: BenchSpec, rows: Sequence[BenchRow], dataset: Dataset) -> list[str]:
    """Return a table per tested split, for a task whose predictions per protein are not kept."""
    group = summarize(rows)
    references = reference_scores(rows[0].task, dataset, spec.published)
    parts = []
    for split in dict.fromkeys(split for s in group if s.seeds for split in s.splits if split != "val"):
        own = [row for row in references if row.split == split]
        table = seed_means_table(group, split, spec.baselines, own)
        parts += [f"<h3>{escape(split)}: {escape(dataset.name)}</h3>", table]
    return [*parts, '<p class="quiet">No predictions per protein are kept for this task.</p>']


def _card_tables(spec: BenchSpec, task: str, dataset: Dataset) -> list[str]:
    """Return a table per split of the scores of other methods, for a task without runs."""
    rows = reference_scores(task, dataset, spec.published)
    parts = []
    for split in dict.fromkeys(row.split for row in rows):
        own = [row for row in rows if row.split == split]
        parts += [f"<h3>{escape(split)}: {escape(dataset.name)}</h3>", published_table(own)]
    return [*parts, '<p class="quiet">No model of the benchmark was tested on this task.</p>']


def _train_on(dataset: Dataset) -> str:
    hint = getattr(dataset.card.provenance, "train_on", "")
    return "only models trained elsewhere are tested" + (f" (train on {escape(hint)})" if hint else "")


def _monitored(one: SplitStatistics) -> list[Any]:
    return [e for e in one.estimates if e.metric == one.monitor and e.average == "pooled"]


def _figure(title: str, chart: str) -> str:
    return f"<figure><figcaption>{escape(title)}</figcaption>{chart}</figure>"


def _rank_note(one: SplitStatistics) -> str:
    ranks = one.ranks
    return (
        f'<p class="quiet">{escape(one.monitor)} of {count_noun(ranks.proteins, "protein")}, 1 is best. Friedman test: '
        f"p = {ranks.p_value:.2g}. A bar connects models that do not differ (Nemenyi, 5 %).</p>"
    )


def _breakdown(groups: Sequence[GroupScore], known: str) -> str:
    note = f'<p class="quiet">The resolution of {known} is known.</p>'
    if not groups:
        return f'<p class="quiet">All proteins are in one group of length, number of chains and resolution.</p>{note}'
    tables = "".join(breakdown_table([g for g in groups if g.by == by]) for by in dict.fromkeys(g.by for g in groups))
    return f"<details><summary>Length, chains and resolution</summary>{tables}{note}</details>"


def _failed(rows: Sequence[BenchRow], optional: Sequence[str]) -> str:
    failed = [row for row in rows if row.error and row.model not in optional]
    absent = {row.model: row.error.splitlines()[0] for row in rows if row.error and row.model in optional}
    left_out = {(f.protein or f.source, f.reason) for row in rows for f in row.failures}
    parts = []
    if failed:
        items = "".join(
            f"<li>{escape(row.model)}, {escape(row.task)}, seed {row.seed}: "
            f"<code>{escape(row.error.splitlines()[0])}</code></li>"
            for row in failed
        )
        parts.append(f"<h2>Failed runs</h2><ul>{items}</ul>")
    if absent:
        items = "".join(f"<li>{escape(name)}: <code>{escape(why)}</code></li>" for name, why in absent.items())
        parts.append(f"<h2>Optional models that could not run</h2><ul>{items}</ul>")
    if left_out:
        items = "".join(f"<li>{escape(name)}: {escape(reason)}</li>" for name, reason in sorted(left_out))
        parts.append(f"<h2>Proteins left out</h2><ul>{items}</ul>")
    return "".join(parts)


def _versions(spec: BenchSpec, versions: Mapping[str, Any]) -> str:
    plain = json.dumps(spec.to_dict(), indent=2, default=str)
    return (
        f'<h2 id="versions">Spec and versions</h2><pre>{escape(json.dumps(dict(versions), indent=2))}</pre>'
        f"<pre>{escape(plain)}</pre>"
    )


_METHODS = """<h2 id="methods">Methods</h2>
<p>Every model is trained on the training split. The epoch, and the threshold of yes/no labels with the largest MCC,
are chosen on the validation split; each tested split is predicted once. Scores are means over seeds, ± the sample
standard deviation. Intervals are 95 % percentile intervals of 1,000 resamples of the proteins.</p>
<p>“Pooled” scores are computed from all residues of a split together, “per protein” scores for each protein and
averaged; a protein for which a metric is undefined, e.g. without positives, is left out of the average. Paired tests
compare the scores of the same proteins, averaged over seeds, by two-sided sign permutations; p-values are adjusted for
all pairs of models in one metric by Holm's method. The calibration error is the expected calibration error in 15
bins.</p>
"""
