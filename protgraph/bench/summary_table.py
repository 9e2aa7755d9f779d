"""Rows to tables: mean ± standard deviation over seeds, and which models do not beat the floors."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from protgraph.bench.rows import BenchRow

__all__ = ["Spread", "Summary", "beats", "csv_table", "markdown_table", "summarize", "compare_with_floors"]


@dataclass(frozen=True)
class Spread:
    """Mean and sample standard deviation (n − 1) of one number over seeds; the latter NaN for a single seed."""

    mean: float
    sd: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """The spread of the finite values; NaN where there are none."""
        kept = [v for v in values if math.isfinite(v)]
        if not kept:
            return cls(math.nan, math.nan)
        return cls(fmean(kept), stdev(kept) if len(kept) > 1 else math.nan)

    def text(self, digits: int = 3) -> str:
        """ "0.712 ± 0.004", without "±" for a single seed, "–" where there is none."""
        if math.isnan(self.mean):
            return "–"
        return f"{self.mean:.{digits}f}" + ("" if math.isnan(self.sd) else f" ± {self.sd:.{digits}f}")


NOTHING = Spread(math.nan, math.nan)

_ARROWS = {"max": "↑", "min": "↓"}


@dataclass(frozen=True)
class Summary:
    """One model on one task, over its seeds.

    Parameters
    ----------
    model, task, dataset : str
        Registry names.
    seeds, failed : int
        Runs that finished and that did not.
    monitor : str
        The metric that decides.
    modes : mapping of str to str
        Whether "max" or "min" of each metric is better.
    splits : mapping of str to mapping
        Split → metric → its spread; "test", "val" and any other.
    parameters : int
        Numbers that it learns.
    residues_per_second, peak_memory_mib, seconds : Spread
        Per run.
    scores : tuple of float
        The monitored metric on test, one a seed.
    """

    model: str
    task: str
    dataset: str
    seeds: int
    failed: int
    monitor: str
    modes: Mapping[str, str]
    splits: Mapping[str, Mapping[str, Spread]]
    parameters: int
    residues_per_second: Spread
    peak_memory_mib: Spread
    seconds: Spread
    scores: tuple[float, ...]

    @property
    def score(self) -> Spread:
        """The monitored metric on test."""
        return self.of(self.monitor)

    def of(self, metric: str, split: str = "test") -> Spread:
        """One metric on one split; NaN where it is not there."""
        return self.splits.get(split, {}).get(metric, NOTHING)


def summarize(rows: Sequence[BenchRow]) -> list[Summary]:
    """One summary per model and task, in the order of their first rows."""
    groups: dict[tuple[str, str, str], list[BenchRow]] = {}
    for row in rows:
        groups.setdefault((row.dataset, row.task, row.model), []).append(row)
    return [_summary(*key, group) for key, group in groups.items()]


def _summary(dataset: str, task: str, model: str, rows: list[BenchRow]) -> Summary:
    good = [row for row in rows if not row.error]
    last = good[-1] if good else rows[-1]

    def spreads(split: str) -> dict[str, Spread]:
        metrics = dict.fromkeys(metric for row in good for metric in row.metrics.get(split, {}))
        return {m: Spread.of(row.metrics.get(split, {}).get(m, math.nan) for row in good) for m in metrics}

    splits = dict.fromkeys(["test", "val"] + [split for row in good for split in row.metrics])
    return Summary(
        model=model,
        task=task,
        dataset=dataset,
        seeds=len(good),
        failed=len(rows) - len(good),
        monitor=last.monitor,
        modes=last.modes,
        splits={split: spreads(split) for split in splits},
        parameters=last.parameters,
        residues_per_second=Spread.of(row.residues_per_second for row in good),
        peak_memory_mib=Spread.of(row.peak_memory_mib for row in good),
        seconds=Spread.of(row.seconds for row in good),
        scores=tuple(row.score for row in good),
    )


def beats(one: Summary, other: Summary) -> bool:
    """Whether one model's mean score over seeds is better than another's; never where either is missing."""
    a, b = one.score.mean, other.score.mean
    return a < b if one.modes.get(one.monitor) == "min" else a > b


def compare_with_floors(summaries: Sequence[Summary], floors: Sequence[str]) -> list[str]:
    """One line a task: the models that do not beat every floor, and those that do by no more than seed noise.

    Seed noise: the two means differ by less than the two standard deviations together. Models and floors without a
    finished run are named.
    """
    return [line for task, group in _by_task(summaries).items() if (line := _verdict(task, group, floors))]


def _verdict(task: str, group: Sequence[Summary], floors: Sequence[str]) -> str:
    low = [s for s in group if s.model in floors and s.seeds]
    rest = [s for s in group if s.model not in floors and s.seeds]
    gone = [s.model for s in group if not s.seeds]
    unfinished = f" No run finished of: {', '.join(gone)}." if gone else ""
    if not low or not rest:
        return f"**{task}**: nothing to compare.{unfinished}" if unfinished and floors else ""
    lost = [s for s in rest if not all(beats(s, floor) for floor in low)]
    close = [s for s in rest if s not in lost and any(_within_noise(s, floor) for floor in low)]
    names = " and ".join(f"{s.model} ({s.score.text()})" for s in low)
    text = f"**{task}**, test {low[0].monitor}, floors {names}: "
    text += f"not beaten by {_scores(lost)}." if lost else "every model beats them."
    if close:
        text += f" Within seed noise of a floor: {_scores(close)}."
    return text + unfinished


def _within_noise(one: Summary, other: Summary) -> bool:
    noise = sum(sd for sd in (one.score.sd, other.score.sd) if not math.isnan(sd))
    return abs(one.score.mean - other.score.mean) < noise


def _scores(group: Sequence[Summary]) -> str:
    return ", ".join(f"{s.model} ({s.score.text()})" for s in group)


def markdown_table(summaries: Sequence[Summary], floors: Sequence[str] = ()) -> str:
    """One table a task: test metrics as mean ± s.d. over seeds, the best of each in bold, floors marked.

    Of other splits, the monitored metric alone.
    """
    return "\n\n".join(_markdown(task, group, floors) for task, group in _by_task(summaries).items())


def _markdown(task: str, group: Sequence[Summary], floors: Sequence[str]) -> str:
    monitor = next((s.monitor for s in group if s.monitor), "")
    modes = next((s.modes for s in group if s.modes), {})
    metrics = dict.fromkeys([monitor] * bool(monitor) + [m for s in group for m in s.splits["test"]])
    others = dict.fromkeys(split for s in group if s.seeds for split in s.splits if split != "test")
    columns = [(m, "test") for m in metrics] + [(monitor, split) for split in others]
    best = [_best(group, m, modes.get(m)) if split == "test" else None for m, split in columns]
    head = ["model", *(m if split == "test" else f"{split} {m}" for m, split in columns)]
    head = [f"{name} {_ARROWS[modes[name]]}" if name in modes else name for name in head]
    head += ["seeds", "parameters", "residues/s", "memory, MiB", "s a run"]
    lines = [head, ["---"] + ["---:"] * (len(head) - 1)]
    for s in group:
        cells = [s.of(m, split).text() for m, split in columns]
        cells = [f"**{text}**" if s is winner else text for text, winner in zip(cells, best, strict=True)]
        seeds = f"{s.seeds} ({s.failed} failed)" if s.failed else str(s.seeds)
        name = f"{s.model} (floor)" if s.model in floors else s.model
        parameters = f"{s.parameters:,}" if s.seeds else "–"
        cost = [s.residues_per_second, s.peak_memory_mib, s.seconds]
        lines.append([name, *cells, seeds, parameters, *(_rounded(c.mean) for c in cost)])
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"### {task}\n\n{table}"


def _best(group: Sequence[Summary], metric: str, mode: str | None) -> Summary | None:
    scored = [s for s in group if not math.isnan(s.of(metric).mean)]
    if mode is None or not scored:
        return None
    return (min if mode == "min" else max)(scored, key=lambda s: s.of(metric).mean)


def _rounded(value: float) -> str:
    if math.isnan(value):
        return "–"
    return f"{value:.1f}" if value < 10 else f"{value:,.0f}"


def csv_table(summaries: Sequence[Summary], floors: Sequence[str] = ()) -> str:
    """One line per model and task, full precision; columns ``test_<metric>_mean``, ``test_<metric>_sd``, …"""
    columns: dict[str, None] = {}
    lines = []
    for s in summaries:
        line = {
            "dataset": s.dataset,
            "task": s.task,
            "model": s.model,
            "floor": int(s.model in floors),
            "seeds": s.seeds,
            "failed": s.failed,
            "monitor": s.monitor,
            "mode": s.modes.get(s.monitor, ""),
            "parameters": s.parameters if s.seeds else "",
        }
        spreads = {f"{split}_{m}": spread for split, held in s.splits.items() for m, spread in held.items()}
        for name in ("residues_per_second", "peak_memory_mib", "seconds"):
            spreads[name] = getattr(s, name)
        for name, spread in spreads.items():
            line |= {f"{name}_mean": spread.mean, f"{name}_sd": spread.sd}
        lines.append({k: "" if isinstance(v, float) and math.isnan(v) else v for k, v in line.items()})
        columns |= dict.fromkeys(line)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


def _by_task(summaries: Sequence[Summary]) -> dict[str, list[Summary]]:
    tasks: dict[str, list[Summary]] = {}
    for s in summaries:
        tasks.setdefault(s.task, []).append(s)
    return tasks
