"""Write the report of a benchmark: tables, figures, the environment, and one page that links them."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from protgraph.argument_types import check_arguments
from protgraph.bench.confusion import confusion_table, plot_confusion
from protgraph.bench.environment import environment
from protgraph.bench.html_report import write_html
from protgraph.bench.job_plan import has_training_split
from protgraph.bench.plot import plot_comparison, plot_curves
from protgraph.bench.published import markdown_scores, reference_scores
from protgraph.bench.rows import BenchRow
from protgraph.bench.run_comparison import RUN_FILE
from protgraph.bench.spec import BenchSpec
from protgraph.bench.statistics import load_runs, split_statistics
from protgraph.bench.statistics_csv import estimates_csv, pairs_csv
from protgraph.bench.summary_table import Summary, compare_with_baselines, csv_table, markdown_table, summarize
from protgraph.file_io import write_text_file
from protgraph.wording import count_noun

__all__ = ["FAILURES", "write_report"]

#: Manifest of the proteins that could not be used, in the folder of the report.
FAILURES = "failures.csv"


@check_arguments("spec", "rows")
def write_report(spec: BenchSpec, rows: Sequence[BenchRow]) -> Path:
    """Write tables (Markdown, CSV), figures (PNG), ``environment.json``, ``report.md``, and ``report.html``.

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
        ``report.md``.
    """
    from protgraph.featurize import write_failures  # it loads torch

    folder = spec.folder
    summaries = summarize(rows)
    table = markdown_table(summaries, spec.baselines)
    write_text_file(folder / "table.md", table + "\n")
    write_text_file(folder / "table.csv", csv_table(summaries, spec.baselines))
    versions = environment()
    write_text_file(folder / "environment.json", json.dumps(versions, indent=2) + "\n")
    figures: dict[str, list[Path]] = {}
    for task in spec.tasks:
        task_rows = [row for row in rows if row.task == task]
        paths = (
            plot_comparison(task_rows, folder / _file_name("comparison", task), baselines=spec.baselines),
            plot_curves(task_rows, folder / _file_name("curves", task), baselines=spec.baselines),
        )
        figures[task] = [path for path in paths if path] + _plot_confusions(task_rows, folder)
    write_failures(folder / FAILURES, dict.fromkeys(failure for row in rows for failure in row.failures))
    page = _page(spec, rows, summaries, table, figures, versions)
    path = folder / "report.md"
    write_text_file(path, page)
    statistics = [
        split_statistics(*key, _monitor_of(rows, key[1]), models) for key, models in load_runs(rows, folder).items()
    ]
    write_text_file(folder / "statistics.csv", estimates_csv(statistics))
    write_text_file(folder / "comparisons.csv", pairs_csv(statistics))
    write_text_file(folder / RUN_FILE, json.dumps({"spec": spec.to_dict(), "rows": [row.key for row in rows]}) + "\n")
    write_html(spec, rows, statistics, versions)
    return path


def _monitor_of(rows: Sequence[BenchRow], task: str) -> str:
    return next(row.monitor for row in rows if row.task == task and not row.error)


def _page(
    spec: BenchSpec,
    rows: Sequence[BenchRow],
    summaries: Sequence[Summary],
    table: str,
    figures: dict[str, list[Path]],
    versions: dict[str, Any],
) -> str:
    failed = [row for row in rows if row.error and row.model not in spec.optional]
    absent = {row.model: _line(row.error) for row in rows if row.error and row.model in spec.optional}
    parts = [f"# Benchmark {spec.name}", _intro(spec, rows)]
    if spec.baselines:
        parts += [
            "## Comparison with the baselines",
            "\n".join(f"- {line}" for line in compare_with_baselines(summaries, spec.baselines)),
        ]
    parts += ["## Table", _legend(spec), table]
    scores = [row for task in spec.tasks for row in reference_scores(task, spec.data(task), spec.published)]
    parts += ["## Scores of other methods", markdown_scores(scores)] if scores else []
    parts += ["## Figures"]
    for task, paths in figures.items():
        parts += [f"![{task}: {path.stem}]({path.name})" for path in paths]
    parts += _confusion_tables(rows)
    if untrained := [task for task in spec.tasks if not has_training_split(spec.data(task), task)]:
        parts += [f"No training split, only models trained elsewhere: {', '.join(untrained)}."]
    parts += [f"{task}: {spec.data(task).card.split_rule}" for task in spec.train_on]
    if folders := [task for task in spec.tasks if spec.is_folder(task)]:
        parts += ["## Data", *(_data(spec, task) for task in _first_of_each(spec, folders))]
    if failures := _failures(rows):
        parts += [
            "## Proteins left out",
            f"All of them, with files and checksums, are in [{FAILURES}]({FAILURES}).",
            failures,
        ]
    if failed:
        lines = (f"- {row.model}, {row.task}, seed {row.seed}: `{_line(row.error)}`" for row in failed)
        parts += ["## Failed runs", "\n".join(lines)]
    if absent:
        parts += ["## Optional models that could not run", "\n".join(f"- {n}: `{why}`" for n, why in absent.items())]
    parts += ["## Environment", _environment(versions), "## Spec", _spec(spec)]
    return "\n\n".join(parts) + "\n"


def _plot_confusions(rows: Sequence[BenchRow], folder: Path) -> list[Path]:
    return [
        plot_confusion(
            counts,
            folder / _file_name("confusion", row.model, row.task),
            title=f"{row.model} on {row.dataset}, {split}",
        )
        for row, split, counts in _confusions(rows)
    ]


def _confusion_tables(rows: Sequence[BenchRow]) -> list[str]:
    parts = []
    for row, split, counts in _confusions(rows):
        parts += [f"## {row.model}: residue types of {split}", confusion_table(counts)]
    return parts


def _confusions(rows: Sequence[BenchRow]) -> list[tuple[BenchRow, str, np.ndarray]]:
    """Return the row of the first seed of each model and task, its last split, and the counts ``(20, 20)`` of types."""
    first: dict[tuple[str, str], BenchRow] = {}
    for row in rows:
        if row.confusion:
            first.setdefault((row.model, row.task), row)
    last = [(row, list(row.confusion)[-1]) for row in first.values()]
    return [(row, split, np.array(row.confusion[split])) for row, split in last]


def _intro(spec: BenchSpec, rows: Sequence[BenchRow]) -> str:
    minutes = sum(row.seconds for row in rows if not math.isnan(row.seconds)) / 60
    parts = [count_noun(len(getattr(spec, key)), key.removesuffix("s")) for key in ("models", "tasks", "seeds")]
    names = ", ".join(f"`{name}`" for name in dict.fromkeys(map(spec.dataset_of, spec.tasks)))
    return (
        f"{' × '.join(parts)} on {names}: {count_noun(len(rows), 'run')}, {minutes:.1f} worker minutes. Each "
        "model is trained on the training split, its epoch is chosen on the validation split, and it is tested once. "
        "Models with published weights and trained models are tested without training."
    )


def _legend(spec: BenchSpec) -> str:
    baselines = " A baseline is a trivial model that every other must beat." if spec.baselines else ""
    return (
        f"Test metrics are mean ± sample standard deviation over {count_noun(len(spec.seeds), 'seed')}; ↑: higher is "
        "better, ↓: lower is better; the best mean is bold. The first metric chooses the epoch, on the validation "
        f"split.{baselines} Residues per second: training only, one thread. Memory: peak resident set of the process, "
        "libraries included; on a GPU, of tensors."
    )


def _first_of_each(spec: BenchSpec, tasks: Sequence[str]) -> list[str]:
    """Return the first task of each dataset."""
    return list({spec.dataset_of(task): task for task in reversed(tasks)}.values())[::-1]


def _data(spec: BenchSpec, task: str) -> str:
    """Describe a folder of user files: version, split sizes, split rule, and notes."""
    dataset = spec.data(task)
    sizes = ", ".join(f"{split} {count.proteins}" for split, count in dataset.card.splits.items())
    first = f"Proteins of `{spec.dataset_of(task)}`, {dataset.version}: {sizes}. Splits: {dataset.card.split_rule}."
    return "\n".join([first, *(f"- {note}." for note in getattr(dataset, "notes", ()))])


def _failures(rows: Sequence[BenchRow]) -> str:
    """List the proteins that could not be used, with the number of runs."""
    done = [row for row in rows if not row.error]
    often = Counter((row.task, f"{f.protein or f.source}: {f.reason}") for row in done for f in row.failures)
    runs = Counter(row.task for row in done)
    return "\n".join(
        f"- {task}, {number} of {count_noun(runs[task], 'run')}: `{_line(line)}`"
        for (task, line), number in sorted(often.items())
    )


def _environment(versions: dict[str, Any]) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in versions["packages"].items())
    machine = f"{versions['processor']}, {versions['cores']} cores, {versions['system']}"
    return f"{machine}; Python {versions['python']}; {packages}."


def _spec(spec: BenchSpec) -> str:
    lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in spec.to_dict().items())
    return f"```json\n{{\n{lines}\n}}\n```"


def _line(error: str) -> str:
    return error.splitlines()[0].replace("`", "'")


def _file_name(*parts: str) -> str:
    """Return the file name of a figure; names of components may have a distribution, as in "acme-gated/gcn"."""
    return "_".join(parts).replace("/", "_") + ".png"
