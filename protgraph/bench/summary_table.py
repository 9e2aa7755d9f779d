"""Tables of a benchmark: mean ± standard deviation over seeds, and comparison with the baselines."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np

from protgraph.bench.rows import BenchRow
from protgraph.train.bootstrap import BootstrapInterval, SplitSize, percentile_interval

__all__ = [
    "Spread",
    "Summary",
    "beats",
    "csv_table",
    "markdown_table",
    "score_difference",
    "summarize",
    "compare_with_baselines",
]


@dataclass(frozen=True)
class Spread:
    """Mean and sample standard deviation (n − 1) of one number over seeds; the latter is NaN for a single seed."""

    mean: float
    sd: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """Compute the spread of the finite values; NaN without any."""
        finite = [v for v in values if math.isfinite(v)]
        if not finite:
            return _MISSING
        return cls(fmean(finite), stdev(finite) if len(finite) > 1 else math.nan)

    def text(self, digits: int = 3) -> str:
        """Format as "0.712 ± 0.004"; without "±" for a single seed, "–" for NaN, and without the sign of −0.000."""
        if math.isnan(self.mean):
            return "–"
        smallest = 10.0 ** -(digits + 2)
        if 0 < abs(self.mean) < smallest and not self.sd >= smallest:  # a score in a small unit
            return f"{self.mean:.{digits}g}" + ("" if math.isnan(self.sd) else f" ± {self.sd:.{digits}g}")
        return f"{self.mean:z.{digits}f}" + ("" if math.isnan(self.sd) else f" ± {self.sd:.{digits}f}")


_MISSING = Spread(math.nan, math.nan)
_ARROWS = {"max": "↑", "min": "↓"}


@dataclass(frozen=True)
class Summary:
    """Results of one model on one task over its seeds.

    Parameters
    ----------
    model, task, dataset : str
        Registry names.
    seeds, failed : int
        Number of finished and failed runs.
    monitor : str
        Metric that chooses the epoch and ranks the models.
    modes : mapping of str to str
        Metric → "max" or "min", the better direction.
    splits : mapping of str to mapping
        Split → metric → its spread; "test", "val" and any other.
    parameters : int
        Number of learnable parameters.
    residues_per_second, peak_memory_mib, seconds : Spread
        Per run.
    scores : tuple of float
        The monitored metric on the test split, one per seed.
    samples : tuple of float
        The monitored metric on the test split for resampled proteins, mean over seeds; empty if there is none.
    test_set : str
        Digest of the test proteins.
    test_size : SplitSize
        Numbers of test proteins.
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
    samples: tuple[float, ...]
    test_set: str
    test_size: SplitSize

    @property
    def score(self) -> Spread:
        """The monitored metric on the test split."""
        return self.of(self.monitor)

    def of(self, metric: str, split: str = "test") -> Spread:
        """Return one metric on one split; NaN if missing."""
        return self.splits.get(split, {}).get(metric, _MISSING)


def summarize(rows: Sequence[BenchRow]) -> list[Summary]:
    """Return one summary per model and task, in the order of their first rows."""
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
        samples=_mean_samples(good),
        test_set=last.test_set,
        test_size=SplitSize(last.test_proteins, last.test_with_positives),
    )


def _mean_samples(rows: Sequence[BenchRow]) -> tuple[float, ...]:
    """Return the mean over seeds of the scores of each sample of proteins; empty if test sets differ."""
    if not rows or len({(row.test_set, len(row.test_scores)) for row in rows}) > 1:
        return ()
    return tuple(np.mean([row.test_scores for row in rows], axis=0).tolist())


def score_difference(one: Summary, other: Summary) -> BootstrapInterval | None:
    """Return the 95 % interval over test proteins of the score of one model minus that of another.

    None without scores of resampled proteins, if the models have different test proteins, or with fewer than two.
    """
    if (
        one.test_size.has_no_interval
        or not one.samples
        or len(one.samples) != len(other.samples)
        or one.test_set != other.test_set
    ):
        return None
    return percentile_interval(np.subtract(one.samples, other.samples))


def beats(one: Summary, other: Summary) -> bool:
    """Return True if one model is better than another by more than the choice of test proteins explains.

    The interval of :func:`score_difference` is on the better side of 0; False without an interval.
    """
    interval = score_difference(one, other)
    if interval is None:
        return False
    return interval.high < 0 if one.modes.get(one.monitor) == "min" else interval.low > 0


def _is_better(one: Summary, other: Summary, metric: str) -> bool:
    """Return True if the mean of a metric over seeds is better; False if it or its direction is missing."""
    mode, a, b = one.modes.get(metric), one.of(metric).mean, other.of(metric).mean
    return mode is not None and (a < b if mode == "min" else a > b)


def compare_with_baselines(summaries: Sequence[Summary], baselines: Sequence[str]) -> list[str]:
    """Return one line per task: models that beat every baseline, that are not shown to, or only within seed noise.

    A model beats a baseline if the 95 % interval of the difference over test proteins excludes 0; see :func:`beats`.
    Within seed noise: the two means differ by less than the sum of the two standard deviations. Small test sets, and
    models and baselines without a finished run, are named, and so are other metrics in which a baseline is better.
    """
    return [line for task, group in _by_task(summaries).items() if (line := _comparison(task, group, baselines))]


def _comparison(task: str, group: Sequence[Summary], baselines: Sequence[str]) -> str:
    defined = [s for s in group if s.seeds and not math.isnan(s.score.mean)]
    undefined = [s for s in group if s.seeds and s not in defined]
    trivial = [s for s in defined if s.model in baselines]
    rest = [s for s in defined if s.model not in baselines]
    missing = [s.model for s in group if not s.seeds]
    unfinished = f" No run finished of: {', '.join(missing)}." if missing else ""
    if undefined and baselines:
        unfinished += f" {undefined[0].monitor} is undefined, not compared: {', '.join(s.model for s in undefined)}."
    if not trivial or not rest:
        return f"**{task}**: nothing to compare.{unfinished}" if unfinished and baselines else ""
    names = " and ".join(f"{s.model} ({s.score.text()})" for s in trivial)
    size = trivial[0].test_size
    over = f" of {size.text()}" if size.proteins else ""
    text = f"**{task}**, test {trivial[0].monitor}{over}, baselines {names}: "
    if size.has_no_interval:
        return f"{text}too few test proteins to compare.{unfinished}"
    text += _verdict(trivial, rest)
    if size.proteins and size.is_small:
        text += f" {size.warning().capitalize()}."
    return text + unfinished


def _verdict(trivial: Sequence[Summary], rest: Sequence[Summary]) -> str:
    """Return sentences about the models ``rest``, compared with the baselines ``trivial`` in the monitored metric."""
    monitor = trivial[0].monitor
    unpaired = [s for s in rest if any(score_difference(s, baseline) is None for baseline in trivial)]
    better = [s for s in unpaired if all(_is_better(s, baseline, monitor) for baseline in trivial)]
    beating = [s for s in rest if all(beats(s, baseline) for baseline in trivial)]
    not_better = [s for s in rest if s not in beating and s not in better]
    parts = []
    if not_better and beating:
        parts.append(f"beaten by {_scores(beating)}; not shown to be beaten by {_scores(not_better)}.")
    elif not_better:
        parts.append(f"not shown to be beaten by {_scores(not_better)}.")
    elif beating:
        parts.append(f"every {'other ' if better else ''}model beats them.")
    if len(unpaired) < len(rest):
        parts.append("A model beats a baseline if the 95 % interval of the difference over proteins excludes 0.")
    if better:
        parts.append(f"Better by the mean score alone, without an interval: {_scores(better)}.")
    close = [s for s in (*beating, *better) if any(_within_noise(s, baseline) for baseline in trivial)]
    if close:
        parts.append(f"Within seed noise of a baseline: {_scores(close)}.")
    others = [(s.model, [m for m in s.modes if any(_is_better(b, s, m) for b in trivial)]) for s in beating]
    if worse := [f"{model} ({', '.join(metrics)})" for model, metrics in others if metrics]:
        parts.append(f"In another metric the mean of a baseline is better: {', '.join(worse)}.")
    return " ".join(parts)


def _within_noise(one: Summary, other: Summary) -> bool:
    noise = sum(sd for sd in (one.score.sd, other.score.sd) if not math.isnan(sd))
    return abs(one.score.mean - other.score.mean) < noise


def _scores(group: Sequence[Summary]) -> str:
    return ", ".join(f"{s.model} ({s.score.text()})" for s in group)


def markdown_table(summaries: Sequence[Summary], baselines: Sequence[str] = ()) -> str:
    """Return one table per task: test metrics as mean ± s.d. over seeds, the best in bold, baselines marked.

    Other splits have a column for the monitored metric only.
    """
    return "\n\n".join(_markdown(task, group, baselines) for task, group in _by_task(summaries).items())


def _markdown(task: str, group: Sequence[Summary], baselines: Sequence[str]) -> str:
    monitor = next((s.monitor for s in group if s.monitor), "")
    modes = next((s.modes for s in group if s.modes), {})
    metrics = dict.fromkeys([monitor] * bool(monitor) + [m for s in group for m in s.splits["test"]])
    others = dict.fromkeys(split for s in group if s.seeds for split in s.splits if split != "test")
    columns = [(m, "test") for m in metrics] + [(monitor, split) for split in others]
    best = [_best(group, m, modes.get(m)) if split == "test" else None for m, split in columns]
    head = ["model", *(m if split == "test" else f"{split} {m}" for m, split in columns)]
    head = [f"{name} {_ARROWS[modes[name]]}" if name in modes else name for name in head]
    head += ["seeds", "parameters", "residues per second", "memory, MiB", "seconds per run"]
    lines = [head, ["---"] + ["---:"] * (len(head) - 1)]
    for s in group:
        cells = [s.of(m, split).text() for m, split in columns]
        cells = [f"**{text}**" if s is winner else text for text, winner in zip(cells, best, strict=True)]
        seeds = f"{s.seeds} ({s.failed} failed)" if s.failed else str(s.seeds)
        name = f"{s.model} (baseline)" if s.model in baselines else s.model
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


def csv_table(summaries: Sequence[Summary], baselines: Sequence[str] = ()) -> str:
    """Return CSV with one line per model and task, in full precision.

    Columns of metrics are ``<split>_<metric>_mean`` and ``<split>_<metric>_sd``.
    """
    columns: dict[str, None] = {}
    lines = []
    for s in summaries:
        line = {
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
        spreads = {f"{split}_{m}": spread for split, metrics in s.splits.items() for m, spread in metrics.items()}
        spreads |= {"residues_per_second": s.residues_per_second, "peak_memory_mib": s.peak_memory_mib}
        spreads["seconds_per_run"] = s.seconds
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
