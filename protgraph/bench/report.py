"""Rows to the files that a person reads: tables, figures, the environment, and one page that joins them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from protgraph.bench.confusion import by_type, plot_confusion
from protgraph.bench.environment import environment
from protgraph.bench.plot import plot_comparison, plot_curves
from protgraph.bench.rows import BenchRow
from protgraph.bench.spec import BenchSpec
from protgraph.bench.summary_table import Summary, compare_with_floors, csv_table, markdown_table, summarize

__all__ = ["write_report"]


def write_report(spec: BenchSpec, rows: Sequence[BenchRow]) -> Path:
    """Write tables (Markdown, CSV), figures (PNG), ``environment.json``, and ``report.md``, which joins them.

    Parameters
    ----------
    spec : BenchSpec
        Its ``folder`` takes the files.
    rows : sequence of BenchRow
        As :func:`protgraph.bench.run.run_bench` returns them.

    Returns
    -------
    Path
        ``report.md``.
    """
    folder = spec.folder
    folder.mkdir(parents=True, exist_ok=True)
    summaries = summarize(rows)
    table = markdown_table(summaries, spec.floors)
    (folder / "table.md").write_text(table + "\n", encoding="utf-8")
    (folder / "table.csv").write_text(csv_table(summaries, spec.floors), encoding="utf-8")
    around = environment()
    (folder / "environment.json").write_text(json.dumps(around, indent=2) + "\n", encoding="utf-8")
    figures: dict[str, list[Path]] = {}
    for task in spec.tasks:
        some = [row for row in rows if row.task == task]
        drawn = (
            plot_comparison(some, folder / f"comparison_{task}.png", floors=spec.floors),
            plot_curves(some, folder / f"curves_{task}.png", floors=spec.floors),
        )
        figures[task] = [path for path in drawn if path] + _confusions(some, folder)
    page = _page(spec, rows, summaries, table, figures, around)
    path = folder / "report.md"
    path.write_text(page, encoding="utf-8")
    return path


def _page(
    spec: BenchSpec,
    rows: Sequence[BenchRow],
    summaries: Sequence[Summary],
    table: str,
    figures: dict[str, list[Path]],
    around: dict[str, Any],
) -> str:
    failed = [row for row in rows if row.error]
    parts = [f"# Benchmark {spec.name}", _intro(spec, rows)]
    if spec.floors:
        parts += ["## Against the floors", "\n".join(f"- {line}" for line in compare_with_floors(summaries, spec.floors))]
    parts += ["## Table", _legend(spec), table]
    parts += ["## Figures"]
    for task, paths in figures.items():
        parts += [f"![{task}: {path.stem}]({path.name})" for path in paths]
    parts += _types(rows)
    if spec.is_folder:
        parts += ["## Data", _data(spec)]
    if left_out := _left_out(rows):
        parts += ["## Proteins left out", left_out]
    if failed:
        lines = (f"- {row.model}, {row.task}, seed {row.seed}: `{_line(row.error)}`" for row in failed)
        parts += ["## Failed runs", "\n".join(lines)]
    parts += ["## Where it ran", _environment(around), "## Spec", _spec(spec)]
    return "\n\n".join(parts) + "\n"


def _confusions(rows: Sequence[BenchRow], folder: Path) -> list[Path]:
    """A figure of what each model takes for what, of its first seed and last split."""
    drawn = []
    for row in _first_seeds(rows):
        split, counts = list(row.confusion.items())[-1]
        path = folder / f"confusion_{row.model}_{row.task}.png"
        drawn.append(plot_confusion(np.array(counts), path, title=f"{row.model} on {row.dataset}, {split}"))
    return drawn


def _types(rows: Sequence[BenchRow]) -> list[str]:
    parts = []
    for row in _first_seeds(rows):
        split, counts = list(row.confusion.items())[-1]
        parts += [f"## {row.model}: residue types of {split}", by_type(np.array(counts))]
    return parts


def _first_seeds(rows: Sequence[BenchRow]) -> list[BenchRow]:
    first: dict[tuple[str, str], BenchRow] = {}
    for row in rows:
        if row.confusion:
            first.setdefault((row.model, row.task), row)
    return list(first.values())


def _intro(spec: BenchSpec, rows: Sequence[BenchRow]) -> str:
    minutes = sum(row.seconds for row in rows if row.seconds == row.seconds) / 60
    parts = (_count(spec.models, "model"), _count(spec.tasks, "task"), _count(spec.seeds, "seed"))
    return (
        f"{' × '.join(parts)} on `{spec.dataset}`: {_count(rows, 'run')}, {minutes:.1f} worker minutes. Each run "
        "trains on the training split, chooses its epoch on the validation split, and is tested once; a model with "
        "published weights is tested as it is."
    )


def _legend(spec: BenchSpec) -> str:
    floors = " A floor is a model that every other must beat." if spec.floors else ""
    return (
        f"Test metrics as mean ± sample standard deviation over {_count(spec.seeds, 'seed')}; ↑ or ↓: which way is "
        f"better; the best mean is bold. The first metric chooses the epoch, on validation.{floors} Residues per "
        "second: training only, one thread. Memory: largest resident set of the process, libraries included; on a GPU, "
        "of tensors."
    )


def _data(spec: BenchSpec) -> str:
    """The files of a folder of one's own: how many are in which split, and what to know of that."""
    dataset = spec.data(spec.tasks[0])
    sizes = ", ".join(f"{split} {count.proteins}" for split, count in dataset.card.splits.items())
    first = f"Proteins of `{spec.dataset}`, {dataset.version}: {sizes}. Splits: {dataset.card.split_rule}."
    return "\n".join([first, *(f"- {note}." for note in getattr(dataset, "notes", ()))])


def _left_out(rows: Sequence[BenchRow]) -> str:
    """Which proteins could not be used, and in how many runs."""
    done = [row for row in rows if not row.error]
    often = Counter((row.task, line) for row in done for line in row.left_out)
    runs = Counter(row.task for row in done)
    return "\n".join(
        f"- {task}, {number} of {_count(range(runs[task]), 'run')}: `{_line(line)}`"
        for (task, line), number in sorted(often.items())
    )


def _environment(around: dict[str, Any]) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in around["packages"].items())
    return f"{around['processor']}, {around['cores']} cores, {around['system']}; Python {around['python']}; {packages}."


def _spec(spec: BenchSpec) -> str:
    lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in spec.to_dict().items())
    return f"```json\n{{\n{lines}\n}}\n```"


def _count(things: Sequence[object], noun: str) -> str:
    return f"{len(things)} {noun}" if len(things) == 1 else f"{len(things)} {noun}s"


def _line(error: str) -> str:
    return error.splitlines()[0].replace("`", "'")
