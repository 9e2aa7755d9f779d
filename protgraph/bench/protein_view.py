"""Best and worst proteins of a model, with true and predicted labels at their CA atoms, for the HTML report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from protgraph.bench.run_predictions import RunPredictions
from protgraph.bench.statistics import ModelRuns, SplitStatistics
from protgraph.data.datasets.dataset import Dataset
from protgraph.errors import ProtgraphError
from protgraph.structure.residues.chain_breaks import linked_to_next
from protgraph.task.metrics import METRICS

__all__ = ["ProteinView", "best_model", "view_proteins"]

#: Colors of classes: Okabe & Ito 2008.
_CLASSES = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#857400", "#6A3D9A")


@dataclass(frozen=True)
class ProteinView:
    """One protein as the page draws it.

    Parameters
    ----------
    name : str
    rank : str
        "best" or "worst".
    value : float
        The monitored metric of the protein, mean over seeds.
    data : mapping
        Plain data for the page: ``x``, ``y``, ``z`` in Å about the center, ``link`` (1: bonded to the next residue),
        ``label`` and ``predicted``, and ``palette`` for classes.
    """

    name: str
    rank: str
    value: float
    data: dict[str, Any]


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
        label, predicted, palette = _colors(model, i)
        if not residues.has_coordinates or len(residues) != len(label):
            missing.append(f"{name}: {len(residues)} residues in the file, {len(label)} predictions")
            continue
        xyz = residues.pos.astype(float) - residues.pos.astype(float).mean(0)
        x, y, z = xyz.round(1).T.tolist()
        linked = np.append(linked_to_next(residues)[:-1], False).astype(int).tolist()
        data = {"x": x, "y": y, "z": z, "link": linked, "label": label, "predicted": predicted, "palette": palette}
        views.append(ProteinView(name, rank, float(values[i]), data))
    return views, f"Not shown: {'; '.join(missing)}." if missing else ""


def _colors(model: ModelRuns, protein: int) -> tuple[list[Any], list[Any], list[str] | None]:
    """Return labels and predictions of one protein, in 0 to 1 or as classes; None for an unknown label."""
    first = model.first
    members = _members(first, protein)
    y = first.rows.y[members]
    logits = torch.stack([run.rows.logits[members] for run in model.runs.values()]).double()  # (S, L, C)
    if not y.is_floating_point():
        predicted = logits.softmax(-1).mean(0).argmax(-1).tolist()
        return [None if v < 0 else v for v in y.tolist()], predicted, list(_CLASSES)
    if first.rows.is_binary:
        predicted, label = logits[..., 0].sigmoid().mean(0), y[:, 0].double()
    else:  # a number: both on the scale of the known labels of the split
        known = first.rows.y[:, 0][~first.rows.y[:, 0].isnan()].double()
        low, high = (float(v) for v in known.quantile(torch.tensor([0.01, 0.99], dtype=torch.float64)))
        predicted, label = ((v - low) / ((high - low) or 1.0) for v in (logits[..., 0].mean(0), y[:, 0].double()))
    label = [None if np.isnan(v) else round(v, 3) for v in label.tolist()]
    return label, [round(v, 3) for v in predicted.tolist()], None


def _members(run: RunPredictions, protein: int) -> slice:
    ends = np.cumsum(run.lengths)
    return slice(int(ends[protein] - run.lengths[protein]), int(ends[protein]))
