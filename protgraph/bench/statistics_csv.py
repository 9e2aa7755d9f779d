"""Statistics of a benchmark as CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from protgraph.bench.statistics import SplitStatistics

__all__ = ["estimates_csv", "pairs_csv"]

_PLACE = ("dataset", "task", "split")
_ESTIMATES = (*_PLACE, "model", "metric", "average", "mode", "mean", "sd", "low", "high", "proteins")
_PAIRS = (*_PLACE, "metric", "model", "minus", "difference", "low", "high", "p_value", "p_holm", "proteins")


def estimates_csv(statistics: Sequence[SplitStatistics]) -> str:
    """Return one line per task, split, model, metric and average, in full precision."""
    return _csv(
        _ESTIMATES,
        (
            {
                **_place(one),
                "model": e.model,
                "metric": e.metric,
                "average": e.average,
                "mode": e.mode,
                "mean": e.mean,
                "sd": e.sd,
                "low": e.interval.low,
                "high": e.interval.high,
                "proteins": e.proteins,
            }
            for one in statistics
            for e in one.estimates
        ),
    )


def pairs_csv(statistics: Sequence[SplitStatistics]) -> str:
    """Return one line per task, split, metric and pair of models, in full precision."""
    return _csv(
        _PAIRS,
        (
            {
                **_place(one),
                "metric": p.metric,
                "model": p.one,
                "minus": p.other,
                "difference": p.difference,
                "low": p.interval.low,
                "high": p.interval.high,
                "p_value": p.p_value,
                "p_holm": p.p_holm,
                "proteins": p.proteins,
            }
            for one in statistics
            for p in one.pairs
        ),
    )


def _place(one: SplitStatistics) -> dict[str, str]:
    return {"dataset": one.dataset, "task": one.task, "split": one.split}


def _csv(columns: Sequence[str], lines: Iterable[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({k: "" if isinstance(v, float) and math.isnan(v) else v for k, v in x.items()} for x in lines)
    return text.getvalue()
