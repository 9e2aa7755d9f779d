"""Predictions of an ensemble on the splits of a dataset: mean logits of its members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from protgraph.data.store.graph_store import GraphStore
from protgraph.errors import CheckpointError
from protgraph.model.build import ProteinModel
from protgraph.task.predictions import SplitPredictions
from protgraph.task.task import Task
from protgraph.train.evaluate import predict_split

__all__ = ["predict_ensemble"]


def predict_ensemble(
    members: Sequence[ProteinModel], stores: Mapping[str, GraphStore], task: Task
) -> dict[str, SplitPredictions]:
    """Predict every protein of each split with the mean logits of the members."""
    found = {}
    for split, store in stores.items():
        parts = [predict_split(member, store, task) for member in members]
        if any(part.logits.shape != parts[0].logits.shape for part in parts):
            raise CheckpointError(f"members of an ensemble predict different rows of the split {split!r}.")
        logits = torch.stack([part.logits for part in parts]).mean(0)
        found[split] = replace(parts[0], logits=logits)
    return found
