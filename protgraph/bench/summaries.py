"""Summaries of a benchmark over seeds, and the comparison with the baselines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np

from protgraph.bench.rows import BenchRow
from protgraph.bench.statistics import LEVEL, PairTest, pair_tests
from protgraph.evaluation.bootstrap import RESAMPLES, SplitSize

__all__ = ["Spread", "Summary", "by_task", "compare_with_baselines", "summarize"]


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
        is_in_small_unit = 0 < abs(self.mean) < smallest and not self.sd >= smallest
        if is_in_small_unit:
            mean = f"{self.mean:.{digits}g}"
            sd = f"{self.sd:.{digits}g}"
        else:
            mean = f"{self.mean:z.{digits}f}"
            sd = f"{self.sd:.{digits}f}"
        return mean if math.isnan(self.sd) else f"{mean} ± {sd}"


_MISSING = Spread(math.nan, math.nan)


@dataclass(frozen=True)
class Summary:
    """Results of one model on one task over its seeds."""

    model: str  # registry name, as task and dataset
    task: str
    dataset: str
    seeds: int  # number of finished runs
    failed: int  # number of failed runs
    monitor: str  # metric that chooses the epoch and ranks the models
    modes: Mapping[str, str]  # metric → "max" or "min", the better direction
    splits: Mapping[str, Mapping[str, Spread]]  # split → metric → its spread; "test", "val" and any other
    parameters: int  # number of learnable parameters
    residues_per_second: Spread  # per run
    peak_memory_mib: Spread  # per run
    seconds: Spread  # per run
    # the monitored metric of each test protein, mean over seeds; empty if it is not known
    protein_scores: tuple[float, ...]
    test_set: str  # digest of the test proteins
    test_size: SplitSize  # numbers of test proteins

    @property
    def score(self) -> Spread:
        """The monitored metric on the test split."""
        return self.of(self.monitor)

    def of(self, metric: str, split: str = "test") -> Spread:
        """Return one metric on one split; NaN if missing."""
        return self.splits.get(split, {}).get(metric, _MISSING)

    def is_better(self, other: Summary, metric: str) -> bool:
        """Return True if the mean of a test metric is better; False if it or its direction is missing."""
        if metric not in self.modes:
            return False
        mean = self.of(metric).mean
        other_mean = other.of(metric).mean
        if self.modes[metric] == "min":
            return mean < other_mean
        return mean > other_mean


def summarize(rows: Sequence[BenchRow]) -> list[Summary]:
    """Return one summary per model and task, in the order of their first rows."""
    groups: dict[tuple[str, str, str], list[BenchRow]] = {}
    for row in rows:
        groups.setdefault((row.dataset, row.task, row.model), []).append(row)
    return [_summary(*key, group) for key, group in groups.items()]


def _summary(dataset: str, task: str, model: str, rows: list[BenchRow]) -> Summary:
    good = [row for row in rows if not row.error]
    last = good[-1] if good else rows[-1]
    return Summary(
        model=model,
        task=task,
        dataset=dataset,
        seeds=len(good),
        failed=len(rows) - len(good),
        monitor=last.monitor,
        modes=last.modes,
        splits=_spreads(good),
        parameters=last.parameters,
        residues_per_second=Spread.of(row.residues_per_second for row in good),
        peak_memory_mib=Spread.of(row.peak_memory_mib for row in good),
        seconds=Spread.of(row.seconds for row in good),
        protein_scores=_mean_protein_scores(good),
        test_set=last.test_set,
        test_size=SplitSize(last.test_proteins, last.test_with_positives),
    )


def _spreads(rows: Sequence[BenchRow]) -> dict[str, dict[str, Spread]]:
    """Return split → metric → spread over the rows that have it; the test and the validation split are always there."""
    values: dict[str, dict[str, list[float]]] = {"test": {}, "val": {}}
    for row in rows:
        for split, metrics in row.metrics.items():
            of_split = values.setdefault(split, {})
            for metric, value in metrics.items():
                of_split.setdefault(metric, []).append(value)
    spreads: dict[str, dict[str, Spread]] = {}
    for split, of_split in values.items():
        spreads[split] = {metric: Spread.of(of_metric) for metric, of_metric in of_split.items()}
    return spreads


def _mean_protein_scores(rows: Sequence[BenchRow]) -> tuple[float, ...]:
    """Return the mean over seeds of the score of each test protein; empty if test sets differ."""
    if len({(row.test_set, len(row.protein_scores)) for row in rows}) != 1:
        return ()
    return tuple(np.mean([row.protein_scores for row in rows], axis=0).tolist())


def by_task(summaries: Sequence[Summary]) -> dict[str, list[Summary]]:
    """Return the summaries of each task."""
    tasks: dict[str, list[Summary]] = {}
    for summary in summaries:
        tasks.setdefault(summary.task, []).append(summary)
    return tasks


def compare_with_baselines(summaries: Sequence[Summary], baselines: Sequence[str]) -> list[str]:
    """Return one line per task: models that beat every baseline, that are not shown to, or only within seed noise.

    A model beats a baseline if the paired test over test proteins, adjusted for all pairs of models by Holm's method,
    is below 0.05, as in the report. Within seed noise: the two means differ by less than the sum of the two standard
    deviations. Small test sets, and models and baselines without a finished run, are named, and so are other metrics in
    which a baseline is better.
    """
    lines = [_comparison(task, group, baselines) for task, group in by_task(summaries).items()]
    return [line for line in lines if line]


def _comparison(task: str, group: Sequence[Summary], baselines: Sequence[str]) -> str:
    defined = [s for s in group if s.seeds and not math.isnan(s.score.mean)]
    trivial = [s for s in defined if s.model in baselines]
    compared = [s for s in defined if s.model not in baselines]
    not_compared = _not_compared(group, baselines)
    if trivial and compared:
        return f"**{task}**, {_compared_with(trivial, compared, _tests(defined))}{not_compared}"
    if not_compared and baselines:
        return f"**{task}**: nothing to compare.{not_compared}"
    return ""


def _not_compared(group: Sequence[Summary], baselines: Sequence[str]) -> str:
    """Return sentences about the models without a finished run, and those without a defined score."""
    sentences = ""
    missing = [s.model for s in group if not s.seeds]
    if missing:
        sentences += f" No run finished of: {', '.join(missing)}."
    undefined = [s for s in group if s.seeds and math.isnan(s.score.mean)]
    if undefined and baselines:
        sentences += f" {undefined[0].monitor} is undefined, not compared: {', '.join(s.model for s in undefined)}."
    return sentences


def _compared_with(
    trivial: Sequence[Summary], compared: Sequence[Summary], tests: Mapping[tuple[str, str], PairTest]
) -> str:
    """Return the test metric, the baselines ``trivial``, and how the models compare with them."""
    size = trivial[0].test_size
    over = f" of {size.text()}" if size.proteins else ""
    names = " and ".join(f"{s.model} ({s.score.text()})" for s in trivial)
    heading = f"test {trivial[0].monitor}{over}, baselines {names}: "
    if size.has_no_interval:
        return f"{heading}too few test proteins to compare."
    warning = f" {size.warning().capitalize()}." if size.proteins and size.is_small else ""
    outcome = _outcome(trivial, compared, tests)
    sentences = [*_verdict(outcome), *_reservations(trivial, outcome)]
    return f"{heading}{' '.join(sentences)}{warning}"


@dataclass(frozen=True)
class _Outcome:
    """Models by their comparison with every baseline in the monitored metric."""

    beating: list[Summary]
    better: list[Summary]  # by the mean score alone, without a test
    not_better: list[Summary]
    is_tested: bool  # at least one model is tested against every baseline


def _outcome(
    trivial: Sequence[Summary], compared: Sequence[Summary], tests: Mapping[tuple[str, str], PairTest]
) -> _Outcome:
    outcome = _Outcome([], [], [], any(_is_tested(s, trivial, tests) for s in compared))
    for s in compared:
        if _is_tested(s, trivial, tests):
            is_beating = all(_beats(s, baseline, tests) for baseline in trivial)
            models = outcome.beating if is_beating else outcome.not_better
        else:
            is_better = all(s.is_better(baseline, s.monitor) for baseline in trivial)
            models = outcome.better if is_better else outcome.not_better
        models.append(s)
    return outcome


def _is_tested(summary: Summary, baselines: Sequence[Summary], tests: Mapping[tuple[str, str], PairTest]) -> bool:
    return all((summary.model, baseline.model) in tests for baseline in baselines)


def _tests(group: Sequence[Summary]) -> dict[tuple[str, str], PairTest]:
    """Return the tests of all pairs of models whose scores are of the same proteins; model, other model → test."""
    tests: dict[tuple[str, str], PairTest] = {}
    comparable = [s for s in group if s.protein_scores and s.test_set == group[0].test_set]
    if len(comparable) < 2:
        return tests
    values = np.array([s.protein_scores for s in comparable])  # (M, P)
    for test in pair_tests(comparable[0].monitor, [s.model for s in comparable], values, RESAMPLES):
        tests[test.one, test.other] = test
        tests[test.other, test.one] = test
    return tests


def _verdict(outcome: _Outcome) -> list[str]:
    """Return sentences about the models that beat the baselines, and those that do not."""
    sentences = []
    if outcome.not_better and outcome.beating:
        not_shown = f"not shown to be beaten by {_scores(outcome.not_better)}"
        sentences.append(f"beaten by {_scores(outcome.beating)}; {not_shown}.")
    elif outcome.not_better:
        sentences.append(f"not shown to be beaten by {_scores(outcome.not_better)}.")
    elif outcome.beating:
        sentences.append(f"every {'other ' if outcome.better else ''}model beats them.")
    if outcome.is_tested:
        sentences.append(
            "A model beats a baseline if p < 0.05 in the paired test over proteins, adjusted by Holm's method."
        )
    if outcome.better:
        sentences.append(f"Better by the mean score alone, without a test: {_scores(outcome.better)}.")
    return sentences


def _reservations(trivial: Sequence[Summary], outcome: _Outcome) -> list[str]:
    """Return sentences about differences within seed noise, and about metrics in which a baseline is better."""
    sentences = []
    close = [s for s in (*outcome.beating, *outcome.better) if _within_noise(s, trivial)]
    if close:
        sentences.append(f"Within seed noise of a baseline: {_scores(close)}.")
    worse = []
    for s in outcome.beating:
        metrics = _metrics_below(s, trivial)
        if metrics:
            worse.append(f"{s.model} ({', '.join(metrics)})")
    if worse:
        sentences.append(f"In another metric the mean of a baseline is better: {', '.join(worse)}.")
    return sentences


def _beats(summary: Summary, other: Summary, tests: Mapping[tuple[str, str], PairTest]) -> bool:
    """Return True if the paired test shows that one model is better than another."""
    test = tests.get((summary.model, other.model))
    if test is None or not test.p_holm < LEVEL:
        return False
    is_higher = (test.difference > 0) == (test.one == summary.model)
    return is_higher == (summary.modes.get(summary.monitor) != "min")


def _within_noise(summary: Summary, baselines: Sequence[Summary]) -> bool:
    """Return True if the means of a model and a baseline differ by less than the sum of their standard deviations."""
    for baseline in baselines:
        noise = sum(sd for sd in (summary.score.sd, baseline.score.sd) if not math.isnan(sd))
        if abs(summary.score.mean - baseline.score.mean) < noise:
            return True
    return False


def _metrics_below(summary: Summary, baselines: Sequence[Summary]) -> list[str]:
    """Return the metrics in which the mean of a baseline is better."""
    metrics = []
    for metric in summary.modes:
        if any(baseline.is_better(summary, metric) for baseline in baselines):
            metrics.append(metric)
    return metrics


def _scores(group: Sequence[Summary]) -> str:
    return ", ".join(f"{s.model} ({s.score.text()})" for s in group)
