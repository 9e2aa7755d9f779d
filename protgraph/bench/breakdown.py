"""Scores of groups of proteins: by length, number of chains and resolution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from protgraph.bench.run_predictions import RunPredictions
from protgraph.bench.statistics import ModelRuns, SplitStatistics
from protgraph.task.losses import known_labels
from protgraph.task.metrics import Metric, registered_metric

__all__ = ["GroupScore", "break_down"]

_LENGTHS = ((150, "up to 150 residues"), (300, "151 to 300 residues"), (500, "301 to 500 residues"))
_RESOLUTIONS = ((2.0, "up to 2.0 Å"), (3.0, "2.0 to 3.0 Å"))


@dataclass(frozen=True)
class GroupScore:
    """The monitored metric of a model on a group of proteins.

    ``by``: "length", "chains" or "resolution". ``group``: e.g. "151 to 300 residues". ``score``: pooled over the rows
    of the group, mean over seeds; NaN if undefined. ``proteins``: proteins of the group.
    """

    by: str
    group: str
    model: str
    score: float
    proteins: int


def break_down(statistics: SplitStatistics, resolutions: Mapping[str, float]) -> list[GroupScore]:
    """Compute the monitored metric of each model in groups of proteins, unless all are in one group."""
    metric = registered_metric(statistics.monitor)
    if metric is None:
        return []
    return [one for model in statistics.models for one in _of_model(model, metric, resolutions)]


def _of_model(model: ModelRuns, metric: Metric, resolutions: Mapping[str, float]) -> list[GroupScore]:
    groups = []
    for by, labels in _groups(model.first, resolutions).items():
        if len(set(labels)) < 2:
            continue
        for group in sorted(set(labels), key=lambda label: label[0]):
            members = [i for i, label in enumerate(labels) if label == group]
            scores = [_score(run, metric, members) for run in model.runs.values()]
            groups.append(GroupScore(by, group[1], model.model, float(np.mean(scores)), len(members)))
    return groups


def _groups(run: RunPredictions, resolutions: Mapping[str, float]) -> dict[str, list[tuple[int, str]]]:
    """Return the group of each protein, as (order, name)."""
    groups = {}
    if (chains := run.chain_counts) is not None:  # rows are residues
        groups["length"] = [_limit(n, _LENGTHS, "more than 500 residues") for n in run.lengths.tolist()]
        names = {1: "1 chain", 2: "2 chains"}
        groups["chains"] = [(min(n, 3), names.get(n, "3 or more chains")) for n in chains.tolist()]
    known = [resolutions.get(name) for name in run.names]
    groups["resolution"] = [
        (9, "unknown") if value is None else _limit(value, _RESOLUTIONS, "more than 3.0 Å") for value in known
    ]
    return groups


def _limit(value: float, limits: tuple[tuple[float, str], ...], last: str) -> tuple[int, str]:
    for order, (limit, name) in enumerate(limits):
        if value <= limit:
            return order, name
    return len(limits), last


def _score(run: RunPredictions, metric: Metric, members: list[int]) -> float:
    """Compute a metric on the rows of some proteins."""
    rows = torch.nonzero(torch.isin(run.rows.protein_of_rows, torch.tensor(members))).flatten()
    one = run.rows.take(rows, torch.unique_consecutive(run.rows.protein_of_rows[rows], return_inverse=True)[1])
    return metric(one) if bool(known_labels(one.y).any()) else np.nan
