"""Best and worst proteins of a model, with true and predicted labels as colors, for the HTML report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from protgraph.bench.run_predictions import RunPredictions
from protgraph.bench.statistics import ModelRuns, SplitStatistics
from protgraph.data.datasets.dataset import Dataset
from protgraph.errors import ProtgraphError
from protgraph.task.metrics import METRICS
from protgraph.visualization import Color, Scene, agreement

__all__ = ["ProteinView", "best_model", "view_proteins"]


@dataclass(frozen=True)
class ProteinView:
    """One protein of the report.

    Parameters
    ----------
    name : str
    rank : str
        "best" or "worst".
    value : float
        The monitored metric of the protein, mean over seeds.
    scene : Scene
        Colored by "predicted", beside it "true"; for classes also their agreement.
    """

    name: str
    rank: str
    value: float
    scene: Scene


def best_model(statistics: SplitStatistics) -> ModelRuns:
    """Return the model with the best mean of the monitored metric."""
    pooled = {
        one.model: one.mean
        for one in statistics.estimates
        if one.metric == statistics.monitor and one.average == "pooled" and not np.isnan(one.mean)
    }
    sign = 1 if statistics.mode == "max" else -1
    chosen = max(pooled, key=lambda name: sign * pooled[name], default=statistics.models[0].model)
    return next(model for model in statistics.models if model.model == chosen)


def view_proteins(statistics: SplitStatistics, dataset: Dataset, *, each: int = 2) -> tuple[list[ProteinView], str]:
    """Return the best and the worst proteins of the best model by the monitored metric.

    Parameters
    ----------
    statistics : SplitStatistics
    dataset : Dataset
        Reads the structures.
    each : int
        Number of best and of worst proteins.

    Returns
    -------
    list of ProteinView, str
        The proteins, best first, and a note on proteins that cannot be shown; empty if all can.
    """
    model = best_model(statistics)
    if model.first.rows.chain is None or statistics.monitor not in METRICS:
        return [], "Predictions are not per residue."
    values = model.protein_values(METRICS[statistics.monitor])
    order = [int(i) for i in np.argsort(values if statistics.mode == "min" else -values) if not np.isnan(values[i])]
    count = min(each, len(order) // 2)
    chosen = [("best", i) for i in order[:count]] + [("worst", i) for i in order[len(order) - count :]]
    examples = {example.id: example for example in dataset.examples(statistics.task)}
    views, missing = [], []
    for rank, i in chosen:
        name = model.first.names[i]
        try:
            residues = dataset.read(examples[name])
        except (ProtgraphError, KeyError) as e:
            missing.append(f"{name}: {e}")
            continue
        predicted, true = _colors(model, i, dataset, statistics.task)
        if not residues.has_coordinates or len(residues) != len(true.values):
            missing.append(f"{name}: {len(residues)} residues in the file, {len(true.values)} predictions")
            continue
        same = agreement(true, [predicted]) if predicted.labels else None
        shown = (true,) if same is None else (true, same)
        views.append(ProteinView(name, rank, float(values[i]), Scene(residues, predicted, shown, beside=true.name)))
    return views, f"Not shown: {'; '.join(missing)}." if missing else ""


def _colors(model: ModelRuns, protein: int, dataset: Dataset, task: str) -> tuple[Color, Color]:
    """Return predictions, averaged over seeds, and labels of one protein; NaN for an unknown label."""
    first, target = model.first, dataset.target(task)
    members = _members(first, protein)
    y = first.rows.y[members]
    logits = torch.stack([run.rows.logits[members] for run in model.runs.values()]).double()  # (S, L, C)
    if not y.is_floating_point():
        names = _class_names(target.names, logits.size(-1))
        known = np.where(y.numpy() < 0, np.nan, y.numpy())
        most = logits.softmax(-1).mean(0).argmax(-1).double().numpy()
        return Color("predicted", most, names), Color("true", known, names)
    label = y[:, 0].double().numpy()
    if first.rows.is_binary:
        probability = logits[..., 0].sigmoid().mean(0).numpy()
        return Color("predicted", probability, is_probability=True), Color("true", label, ("no", "yes"))
    known = first.rows.y[:, 0][~first.rows.y[:, 0].isnan()].double()  # both on the scale of the labels of the split
    low, high = (float(v) for v in known.quantile(torch.tensor([0.01, 0.99], dtype=torch.float64)))
    number = logits[..., 0].mean(0).numpy()
    return tuple(
        Color(name, values, unit=target.unit, limits=(low, high))
        for name, values in (("predicted", number), ("true", label))
    )


def _class_names(names: Sequence[str], count: int) -> tuple[str, ...]:
    return tuple(names) or tuple(f"class {i}" for i in range(count))


def _members(run: RunPredictions, protein: int) -> slice:
    ends = np.cumsum(run.lengths)
    return slice(int(ends[protein] - run.lengths[protein]), int(ends[protein]))
