"""Write the report of a benchmark: one HTML page that needs no network, tables and figures."""

from __future__ import annotations

import json
import math
import os
import platform
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib import metadata, resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from protgraph import registry
from protgraph.argument_types import check_arguments
from protgraph.bench.figures import (
    FEW_ROWS,
    confusion_figure,
    curves_figure,
    inline_svg,
    ranks_figure,
    reliability_figure,
    save_figure,
    scores_figure,
    style_of,
)
from protgraph.bench.job_plan import has_training_split
from protgraph.bench.published import reference_scores
from protgraph.bench.rows import BenchRow
from protgraph.bench.run_comparison import RUN_FILE
from protgraph.bench.spec import BenchSpec
from protgraph.bench.statistics import SplitStatistics, break_down, load_runs, split_statistics
from protgraph.bench.summaries import compare_with_baselines, summarize
from protgraph.bench.tables import (
    breakdown_table,
    confusion_table,
    csv_table,
    estimates_csv,
    markdown_table,
    pair_table,
    pairs_csv,
    published_table,
    score_table,
)
from protgraph.data.datasets.dataset import Dataset
from protgraph.file_io import write_text_file
from protgraph.wording import count_noun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FAILURES", "environment", "write_report", "write_report_page"]

#: Manifest of the proteins that could not be used, in the folder of the report.
FAILURES = "failures.csv"
_PACKAGES = ("protgraph-pyg", "torch", "torch_geometric", "e3nn", "lightning", "biotite", "numpy")


@check_arguments("spec", "rows")
def write_report(spec: BenchSpec, rows: Sequence[BenchRow]) -> Path:
    """Write ``report.html``, tables (Markdown, CSV), figures (PNG) and ``environment.json``.

    ``statistics.csv`` has every score with its interval, ``comparisons.csv`` the paired tests of all pairs of models,
    and ``run.json`` the spec and the keys of its rows.

    Proteins that could not be used are in ``failures.csv``, with the columns of
    :func:`protgraph.featurize.write_failures`; without any, the file of an earlier run is removed.

    Parameters
    ----------
    spec : BenchSpec
        The files are written to its ``folder``.
    rows : sequence of BenchRow
        Result of :func:`protgraph.bench.run.run_bench`.

    Returns
    -------
    Path
        ``report.html``.
    """
    from protgraph.featurize import write_failures  # it loads torch

    folder = spec.folder
    summaries = summarize(rows)
    write_text_file(folder / "table.md", markdown_table(summaries, spec.baselines) + "\n")
    write_text_file(folder / "table.csv", csv_table(summaries, spec.baselines))
    statistics = []
    for (dataset, task, split), models in load_runs(rows, folder).items():
        monitor = next(row.monitor for row in rows if row.task == task and not row.error)
        statistics.append(split_statistics(dataset, task, split, monitor, models))
    write_text_file(folder / "statistics.csv", estimates_csv(statistics))
    write_text_file(folder / "comparisons.csv", pairs_csv(statistics))
    versions = environment()
    write_text_file(folder / "environment.json", json.dumps(versions, indent=2) + "\n")
    write_text_file(folder / RUN_FILE, json.dumps({"spec": spec.to_dict(), "rows": [row.key for row in rows]}) + "\n")
    write_failures(folder / FAILURES, dict.fromkeys(failure for row in rows for failure in row.failures))
    _write_pictures(spec, rows)
    return write_report_page(spec, rows, statistics, versions)


def _write_pictures(spec: BenchSpec, rows: Sequence[BenchRow]) -> None:
    """Write the figures of each task as PNG files."""
    series = _series(spec)
    for task in spec.tasks:
        task_rows = [row for row in rows if row.task == task]
        figures: dict[tuple[str, ...], Figure | None] = {
            ("comparison", task): scores_figure(task_rows, "test", series, baselines=spec.baselines),
            ("curves", task): curves_figure(task_rows, series),
        }
        for row, split, counts in _confusions(task_rows):
            title = f"{row.model} on {row.dataset}, {split}"
            figures["confusion", row.model, task] = confusion_figure(counts, title)
        for parts, figure in figures.items():
            if figure is not None:
                save_figure(figure, spec.folder / _file_name(*parts))


def _series(spec: BenchSpec) -> dict[str, int]:
    """Return model → index of its color, the same in all tasks."""
    names = dict.fromkeys(name for task in spec.tasks for name in spec.rows_of(task))
    return {model: number for number, model in enumerate(names)}


def _confusions(rows: Sequence[BenchRow]) -> list[tuple[BenchRow, str, np.ndarray]]:
    """Return the row of the first seed of each model, its last split, and the counts ``(20, 20)`` of types."""
    first: dict[str, BenchRow] = {}
    for row in rows:
        if row.confusion:
            first.setdefault(row.model, row)
    confusions = []
    for row in first.values():
        split = list(row.confusion)[-1]
        confusions.append((row, split, np.array(row.confusion[split])))
    return confusions


def _file_name(*parts: str) -> str:
    """Return the file name of a figure; names of components may have a distribution, as in "acme-gated/gcn"."""
    return "_".join(parts).replace("/", "_") + ".png"


def write_report_page(
    spec: BenchSpec, rows: Sequence[BenchRow], statistics: Sequence[SplitStatistics], versions: Mapping[str, Any]
) -> Path:
    """Write ``report.html`` into the folder of the benchmark."""
    series = _series(spec)
    sections = [_task_section(spec, rows, statistics, task, series) for task in spec.tasks]
    links = "".join(f'<a href="#task-{i}">{escape(task)}</a>' for i, task in enumerate(spec.tasks))
    body = [
        f"<h1>Benchmark {escape(spec.name)}</h1>",
        f"<p>{_intro(spec, rows)}</p>",
        f'<nav>{links}<a href="#methods">methods</a><a href="#versions">spec and versions</a></nav>',
        _baselines(spec, rows),
        *sections,
        _failed(rows, spec.optional),
        _METHODS,
        _versions(spec, versions),
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


def _baselines(spec: BenchSpec, rows: Sequence[BenchRow]) -> str:
    lines = [line.replace("**", "") for line in compare_with_baselines(summarize(rows), spec.baselines)]
    return f"<h2>Comparison with the baselines</h2>{_items(lines)}" if lines else ""


def _items(lines: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def _task_section(
    spec: BenchSpec,
    rows: Sequence[BenchRow],
    statistics: Sequence[SplitStatistics],
    task: str,
    series: Mapping[str, int],
) -> str:
    task_rows = [row for row in rows if row.task == task]
    elements = [f'<section id="task-{spec.tasks.index(task)}"><h2>{escape(task)}</h2>', _legend(task_rows, series)]
    dataset = spec.data(task)
    elements += [f'<p class="quiet">{escape(line)}</p>' for line in _data_lines(spec, task, dataset)]
    curves = curves_figure(task_rows, series)
    if curves is not None:
        elements.append(f'<div class="charts">{_chart("Learning curves", inline_svg(curves, "Learning curves"))}</div>')
    tested = [tested_split for tested_split in statistics if tested_split.task == task]
    if not task_rows:
        elements += _card_tables(spec, task, dataset)
    elif not tested:
        elements += _summary_tables(spec, task_rows, dataset)
    for tested_split in tested:
        elements += _split_parts(spec, task_rows, tested_split, series, dataset)
    for row, split, counts in _confusions(task_rows):
        title = f"{row.model}: residue types of {split}"
        picture = _chart("", inline_svg(confusion_figure(counts, title), title))
        table = confusion_table(counts).html()
        elements.append(
            f'<details><summary>{escape(title)}</summary><div class="charts">{picture}{table}</div></details>'
        )
    return "".join([*elements, "</section>"])


def _data_lines(spec: BenchSpec, task: str, dataset: Dataset) -> list[str]:
    """Describe what is not on a card: folders of files, other training data, a missing training split."""
    lines = []
    if not has_training_split(dataset, task):
        hint = dataset.card.provenance.train_on
        train_on = f" (train on {hint})" if hint else ""
        lines.append(f"{dataset.name} has no training split: only models trained elsewhere are tested{train_on}.")
    if task in spec.train_on:
        lines.append(dataset.card.split_rule)
    if spec.is_folder(task):
        sizes = ", ".join(f"{split} {count.proteins}" for split, count in dataset.card.splits.items())
        name = f"Proteins of {spec.dataset_of(task)}, {dataset.version}"
        lines.append(f"{name}: {sizes}. Splits: {dataset.card.split_rule}.")
        lines += [f"{note}." for note in getattr(dataset, "notes", ())]
    return lines


def _legend(rows: Sequence[BenchRow], series: Mapping[str, int]) -> str:
    """Return one button per model with a finished run; the script hides and shows its series."""
    buttons = []
    for model in dict.fromkeys(row.model for row in rows if not row.error):
        style = style_of(series[model])
        border = "solid" if style.dashes == "solid" else "dashed"
        line = f"border-color:{style.color};border-top-style:{border}"
        buttons.append(
            f'<button type="button" aria-pressed="true" data-toggle="{escape(model)}"><i style="{line}"></i>'
            f"{escape(model)}</button>"
        )
    return f'<div class="legend">{"".join(buttons)}</div>'


def _split_parts(
    spec: BenchSpec,
    rows: Sequence[BenchRow],
    tested_split: SplitStatistics,
    series: Mapping[str, int],
    dataset: Dataset,
) -> list[str]:
    """Return heading, tables and figures of a tested split."""
    references = reference_scores(tested_split.task, dataset, spec.published)
    published = [row for row in references if row.split == tested_split.split]
    tested = {model.model for model in tested_split.models}
    group = [s for s in summarize(rows) if s.model in tested]
    table = score_table(group, tested_split.split, spec.baselines, published, tested_split.estimates)
    title = f"{tested_split.split}: {count_noun(len(tested_split.names), 'protein')} of {tested_split.dataset}"
    elements = [f"<h3>{escape(title)}</h3>", table.html()]
    elements.append(f'<div class="charts">{"".join(_charts(spec, rows, tested_split, series))}</div>')
    if tested_split.pairs:
        elements.append(f"<details><summary>Paired tests</summary>{pair_table(tested_split).html()}</details>")
    if tested_split.undefined:
        names = "; ".join(f"{model}: {', '.join(metrics)}" for model, metrics in tested_split.undefined.items())
        elements.append(f"<p>Undefined (–), in no interval, rank or paired test: {escape(names)}.</p>")
    if tested_split.left_out:
        elements.append(
            f"<p>Other proteins or labels, in no paired test: {escape(', '.join(tested_split.left_out))}.</p>"
        )
    elements.append(_groups(tested_split, dataset))
    return elements


def _charts(
    spec: BenchSpec, rows: Sequence[BenchRow], tested_split: SplitStatistics, series: Mapping[str, int]
) -> list[str]:
    """Return the figures of a tested split: scores, reliability and ranks."""
    intervals = {}
    for estimate in tested_split.estimates:
        if estimate.metric == tested_split.monitor and estimate.average == "pooled":
            intervals[estimate.model] = estimate.interval
    charts = []
    scores = scores_figure(rows, tested_split.split, series, baselines=spec.baselines, intervals=intervals)
    if scores is not None:
        charts.append(_chart("Test scores", inline_svg(scores, f"Intervals of {tested_split.monitor}")))
    curves = {}
    for model in tested_split.models:
        bins = model.reliability()
        if bins is not None:
            curves[model.model] = bins.curve()
    if curves:
        note = f"Open circles: bins of fewer than {FEW_ROWS} rows."
        svg = inline_svg(reliability_figure(curves, series), "Reliability of predicted probabilities")
        charts.append(_chart("Reliability", svg, note))
    ranks = tested_split.ranks
    if ranks:
        note = (
            f"{tested_split.monitor} of {count_noun(ranks.proteins, 'protein')}, 1 is best. Friedman test: "
            f"p = {ranks.p_value:.2g}. A bar connects models that do not differ (Nemenyi, 5 %)."
        )
        svg = inline_svg(ranks_figure(ranks, series), "Mean ranks and critical difference")
        charts.append(_chart("Mean ranks over proteins", svg, note))
    return charts


def _chart(title: str, svg: str, note: str = "") -> str:
    note = f'<p class="quiet">{escape(note)}</p>' if note else ""
    caption = f"<figcaption>{escape(title)}</figcaption>" if title else ""
    return f"<figure>{caption}{svg}{note}</figure>"


def _groups(tested_split: SplitStatistics, dataset: Dataset) -> str:
    """Return the scores of groups of proteins, by length, number of chains and resolution."""
    resolutions = {e.id: e.resolution for e in dataset.examples(tested_split.task) if e.resolution is not None}
    groups = break_down(tested_split, resolutions)
    known = sum(name in resolutions for name in tested_split.names)
    count = f"{known} of {count_noun(len(tested_split.names), 'protein')}"
    note = f'<p class="quiet">The resolution of {count} is known.</p>'
    if not groups:
        return f'<p class="quiet">All proteins are in one group of length, number of chains and resolution.</p>{note}'
    tables = ""
    for by in dict.fromkeys(group.by for group in groups):
        tables += breakdown_table([group for group in groups if group.by == by]).html()
    return f"<details><summary>Length, chains and resolution</summary>{tables}{note}</details>"


def _summary_tables(spec: BenchSpec, rows: Sequence[BenchRow], dataset: Dataset) -> list[str]:
    """Return a table per tested split, for a task whose predictions per protein are not kept."""
    group = summarize(rows)
    references = reference_scores(rows[0].task, dataset, spec.published)
    elements = []
    for split in dict.fromkeys(split for s in group if s.seeds for split in s.splits if split != "val"):
        published = [row for row in references if row.split == split]
        table = score_table(group, split, spec.baselines, published)
        elements += [f"<h3>{escape(split)}: {escape(dataset.name)}</h3>", table.html()]
    return [*elements, '<p class="quiet">No predictions per protein are kept for this task.</p>']


def _card_tables(spec: BenchSpec, task: str, dataset: Dataset) -> list[str]:
    """Return a table per split of the scores of other methods, for a task without runs."""
    rows = reference_scores(task, dataset, spec.published)
    elements = []
    for split in dict.fromkeys(row.split for row in rows):
        table = published_table([row for row in rows if row.split == split])
        elements += [f"<h3>{escape(split)}: {escape(dataset.name)}</h3>", table.html()]
    return [*elements, '<p class="quiet">No model of the benchmark was tested on this task.</p>']


def _failed(rows: Sequence[BenchRow], optional: Sequence[str]) -> str:
    """List runs that failed, models that could not run, and proteins that could not be used."""
    failed: list[str] = []
    reason_of_optional: dict[str, str] = {}
    for row in rows:
        if row.error and row.model in optional:
            reason_of_optional[row.model] = _first_line(row.error)
        elif row.error:
            failed.append(f"{row.model}, {row.task}, seed {row.seed}: {_first_line(row.error)}")
    lists = {
        "Failed runs": failed,
        "Optional models that could not run": [f"{name}: {reason}" for name, reason in reason_of_optional.items()],
        f"Proteins left out (all: {FAILURES})": _left_out(rows),
    }
    return "".join(f"<h2>{title}</h2>{_items(lines)}" for title, lines in lists.items() if lines)


def _left_out(rows: Sequence[BenchRow]) -> list[str]:
    """Return the proteins that finished runs could not use, and the number of runs of each."""
    runs: Counter[str] = Counter()
    runs_without: Counter[tuple[str, str, str]] = Counter()
    for row in rows:
        if not row.error:
            runs[row.task] += 1
            runs_without.update((row.task, f.protein or f.source, f.reason) for f in row.failures)
    lines = []
    for (task, name, reason), number in sorted(runs_without.items()):
        lines.append(f"{name}: {_first_line(reason)} ({task}, {number} of {count_noun(runs[task], 'run')})")
    return lines


def _first_line(error: str) -> str:
    return error.splitlines()[0]


def _versions(spec: BenchSpec, versions: Mapping[str, Any]) -> str:
    plain = json.dumps(spec.to_dict(), indent=2, default=str)
    return (
        f'<h2 id="versions">Spec and versions</h2><pre>{escape(json.dumps(dict(versions), indent=2))}</pre>'
        f"<pre>{escape(plain)}</pre>"
    )


def environment() -> dict[str, Any]:
    """Return versions of the libraries, the machine, and every distribution with components; imports none of them."""
    sources = {
        kind.entry(name).source for kind in registry.registries.values() for name in kind.names()
    }  # "distribution version" or "session"
    return {
        "python": sys.version.split()[0],
        "packages": {name: version for name in _PACKAGES if (version := _version(name))},
        "components_from": sorted(sources),
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads_per_run": 1,
    }


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    match = re.search(r"model name\s*:\s*(.+)", info.read_text()) if info.exists() else None
    return match[1].strip() if match else platform.processor() or platform.machine()


_METHODS = """<h2 id="methods">Methods</h2>
<p>Every model is trained on the training split. The epoch, and the threshold of yes/no labels with the largest MCC,
are chosen on the validation split; each tested split is predicted once. Scores are means over seeds, ± the sample
standard deviation. Intervals are 95 % percentile intervals of 1,000 resamples of the proteins. Models with published
weights and trained models are tested without training.</p>
<p>“Pooled” scores are computed from all residues of a split together, “per protein” scores for each protein and
averaged; a protein for which a metric is undefined, e.g. without positives, is left out of the average. Where proteins
share a cluster of sequences, “per cluster” scores are averaged in each cluster first, and intervals and tests are over
clusters: copies of a protein count once. Paired tests compare the scores of the same proteins or clusters, averaged
over seeds, by two-sided sign permutations; p-values are adjusted for
all pairs of models in one metric by Holm's method. The calibration error is the expected calibration error in 15
bins.</p>
"""
