"""Compare two benchmark runs, e.g. of two versions of a model, on the same proteins and seeds."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from protgraph import registry
from protgraph.argument_types import check_arguments
from protgraph.bench.paired_tests import holm
from protgraph.bench.rows import BenchRow, read_rows
from protgraph.bench.run_predictions import RunPredictions, load_predictions
from protgraph.bench.statistics import LEVEL, ModelRuns, pair_tests, same_rows
from protgraph.errors import DatasetError, OptionError, list_first
from protgraph.evaluation.bootstrap import RESAMPLES, BootstrapInterval, percentile_interval
from protgraph.task.metrics import Metric
from protgraph.wording import format_decimals

__all__ = ["RUN_FILE", "RunDifference", "compare_runs", "differences_table"]

#: Spec and keys of the rows of a finished run, in its folder.
RUN_FILE = "run.json"


@dataclass(frozen=True)
class RunDifference:
    """Difference of a model of run B from a model of run A in one metric on one tested split.

    ``seeds``: seeds that both have. ``proteins``: proteins with a value of the metric. ``a``, ``b``: pooled metric,
    mean over the common seeds. ``interval``: 95 % over proteins, of the pooled metric of B minus that of A.
    ``protein_difference``: mean over proteins of B minus A; NaN if the metric is not defined for single proteins.
    ``p_value``, ``p_holm``: two-sided sign permutation test over proteins; adjusted for all rows of the comparison.
    """

    task: str
    split: str
    metric: str
    mode: str
    model_a: str
    model_b: str
    seeds: int
    proteins: int
    a: float
    b: float
    interval: BootstrapInterval
    protein_difference: float
    p_value: float
    p_holm: float = math.nan

    @property
    def verdict(self) -> str:
        """Return "A better" or "B better" if the adjusted p-value is below 0.05, else "no difference shown"."""
        if math.isnan(self.p_holm):
            return "not tested"
        if self.p_holm >= LEVEL:
            return "no difference shown"
        is_higher = self.protein_difference > 0
        is_b_better = is_higher if self.mode == "max" else not is_higher
        return "B better" if is_b_better else "A better"


@check_arguments("a", "b")
def compare_runs(
    a: str | Path, b: str | Path, *, models: Mapping[str, str] | None = None, resamples: int = RESAMPLES
) -> list[RunDifference]:
    """Test two benchmark runs against each other, paired over proteins and seeds.

    ``a``, ``b``: folders of finished runs, e.g. ``runs/mine``. ``models``: model of A → model of B. By default, the
    models that both have; if each run has a single model, these two. ``resamples``: resamples of the intervals. Returns
    one row per task, tested split, pair of models and metric. Raises :class:`DatasetError` if a folder is not a
    finished run, or the runs differ in the version of a dataset, in proteins or labels, which the message lists. Raises
    :class:`OptionError` if the runs have no task, model or seed in common.
    """
    runs_a = _read(Path(a))
    runs_b = _read(Path(b))
    pairs = _model_pairs([_models(runs_a), _models(runs_b)], models)
    differences: list[RunDifference] = []
    for task in _common_tasks(a, b, runs_a, runs_b):
        for model_a, model_b in pairs:
            if (task, model_a) in runs_a and (task, model_b) in runs_b:
                side_a = (Path(a), runs_a[task, model_a])
                side_b = (Path(b), runs_b[task, model_b])
                differences += _differences(side_a, side_b, resamples)
    adjusted = holm([row.p_value for row in differences])
    return [replace(row, p_holm=p) for row, p in zip(differences, adjusted, strict=True)]


def _common_tasks(
    a: str | Path, b: str | Path, runs_a: Iterable[tuple[str, str]], runs_b: Iterable[tuple[str, str]]
) -> list[str]:
    """Return the tasks of the (task, model) of A that B has, too."""
    tasks_a = dict.fromkeys(task for task, _ in runs_a)
    tasks_b = dict.fromkeys(task for task, _ in runs_b)
    tasks = [task for task in tasks_a if task in tasks_b]
    if not tasks:
        raise OptionError(f"bench compare: no common task. {a} has {', '.join(tasks_a)}; {b} has {', '.join(tasks_b)}.")
    return tasks


def _models(rows: Mapping[tuple[str, str], object]) -> list[str]:
    return list(dict.fromkeys(model for _, model in rows))


def _read(folder: Path) -> dict[tuple[str, str], dict[int, BenchRow]]:
    """Return the finished rows of a run: (task, model) → seed → row."""
    try:
        keys = json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))["rows"]
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise DatasetError(
            f"not a finished benchmark run: {str(folder)!r} (no readable {RUN_FILE}). Allowed: the folder of "
            "'protgraph bench' with report.html, e.g. runs/pdb_core."
        ) from e
    rows = read_rows(folder / "rows.jsonl")
    finished: dict[tuple[str, str], dict[int, BenchRow]] = {}
    for key in keys:
        row = rows.get(key)
        if row is not None and not row.error and row.predictions:
            finished.setdefault((row.task, row.model), {})[row.seed] = row
    if not finished:
        raise DatasetError(
            f"benchmark run without predictions: {str(folder)!r}. Run 'protgraph bench' on its spec again."
        )
    return finished


def _model_pairs(models: Sequence[Sequence[str]], chosen: Mapping[str, str] | None) -> list[tuple[str, str]]:
    models_a, models_b = models
    if chosen:
        for model_a, model_b in chosen.items():
            _require_model(model_a, "A", models_a)
            _require_model(model_b, "B", models_b)
        return list(chosen.items())
    common = [name for name in models_a if name in models_b]
    if common:
        return [(name, name) for name in common]
    if len(models_a) == len(models_b) == 1:
        return [(models_a[0], models_b[0])]
    raise OptionError(
        f"bench compare: no common model. A has {', '.join(models_a)}; B has {', '.join(models_b)}. Give pairs "
        f"with --models {models_a[0]}={models_b[0]}."
    )


def _require_model(name: str, run: str, models: Sequence[str]) -> None:
    if name not in models:
        raise OptionError(f"bench compare: model {name!r} is not in run {run}. Allowed: {', '.join(models)}.")


def _differences(
    side_a: tuple[Path, dict[int, BenchRow]], side_b: tuple[Path, dict[int, BenchRow]], resamples: int
) -> list[RunDifference]:
    """Return the differences of one pair of models on one task, without adjusted p-values."""
    rows_a, rows_b = side_a[1], side_b[1]  # by seed
    seeds = [seed for seed in rows_a if seed in rows_b]
    a, b = next(iter(rows_a.values())), next(iter(rows_b.values()))
    _require_equal_data(a, b)
    if not seeds:
        raise OptionError(
            f"bench compare: no common seed of {a.model} and {b.model} on {a.task}. A has {sorted(rows_a)}, B has "
            f"{sorted(rows_b)}."
        )
    differences = []
    for split in [split for split in a.predictions if split in b.predictions]:
        models: list[ModelRuns] = []
        for folder, rows in (side_a, side_b):
            runs = {seed: load_predictions(folder / rows[seed].predictions[split]) for seed in seeds}
            models.append(ModelRuns(rows[seeds[0]].model, rows[seeds[0]].modes, runs))
        _require_equal_rows(a, split, models[0].first, models[1].first)
        for name, mode in a.modes.items():
            if name in registry.metrics and name in b.modes:
                metric = registry.metrics.get(name)
                differences.append(_difference(a.task, split, metric, mode, models[0], models[1], resamples))
    return differences


def _difference(
    task: str, split: str, metric: Metric, mode: str, a: ModelRuns, b: ModelRuns, resamples: int
) -> RunDifference:
    samples = b.pooled_samples(metric, resamples) - a.pooled_samples(metric, resamples)
    values = np.stack([b.protein_values(metric), a.protein_values(metric)])  # (2, P)
    tests = pair_tests(metric.name, ("B", "A"), values, resamples)  # none if it is not defined for two proteins
    return RunDifference(
        task=task,
        split=split,
        metric=metric.name,
        mode=mode,
        model_a=a.model,
        model_b=b.model,
        seeds=len(a.runs),
        proteins=int((~np.isnan(values[0] - values[1])).sum()),
        a=float(np.mean(a.pooled(metric))),
        b=float(np.mean(b.pooled(metric))),
        interval=percentile_interval(samples),
        protein_difference=tests[0].difference if tests else math.nan,
        p_value=tests[0].p_value if tests else math.nan,
    )


def _require_equal_data(a: BenchRow, b: BenchRow) -> None:
    for setting, value_a, value_b in (
        ("dataset", a.dataset, b.dataset),
        ("dataset version", a.dataset_version, b.dataset_version),
    ):
        if value_a != value_b:
            raise DatasetError(
                f"bench compare: task {a.task!r}: the {setting} differs: A {value_a!r}, B {value_b!r}. Compare runs on "
                "the same data."
            )


def _require_equal_rows(row: BenchRow, split: str, a: RunPredictions, b: RunPredictions) -> None:
    if same_rows(a, b):
        return
    differing = []
    only_a = sorted(set(a.names) - set(b.names))
    only_b = sorted(set(b.names) - set(a.names))
    if only_a:
        differing.append(f"only in A: {list_first(only_a, 5)}")
    if only_b:
        differing.append(f"only in B: {list_first(only_b, 5)}")
    if differing:
        proteins = "; ".join(differing)
        raise DatasetError(f"bench compare: task {row.task!r}, split {split!r}: other proteins: {proteins}.")
    raise DatasetError(
        f"bench compare: task {row.task!r}, split {split!r}: the same proteins with other residues or labels. Compare "
        "runs on the same data."
    )


def differences_table(differences: Sequence[RunDifference]) -> str:
    """Return a Markdown table with a verdict per row."""
    head = ["task", "split", "model", "metric", "A", "B", "B − A (95 %)", "per protein", "p, Holm", "verdict"]
    lines = [head, ["---"] * 4 + ["---:"] * 5 + ["---"]]
    for d in differences:
        model = d.model_a if d.model_a == d.model_b else f"{d.model_a} → {d.model_b}"
        mean, p = (
            "–" if math.isnan(value) else f"{value:{form}}"
            for value, form in ((d.protein_difference, "+.3f"), (d.p_holm, ".2g"))
        )
        difference = "–" if math.isnan(d.b - d.a) else f"{d.b - d.a:+.3f} ({d.interval.text()})"
        place = [d.task, d.split, model, f"{d.metric} {'↑' if d.mode == 'max' else '↓'}"]
        lines.append([*place, format_decimals(d.a, 3), format_decimals(d.b, 3), difference, mean, p, d.verdict])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
