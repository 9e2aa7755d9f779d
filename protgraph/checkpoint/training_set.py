"""Distance of a protein from the training set, in the space of its embedding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from protgraph.data.graph.protein_graph import residue_nodes
from protgraph.data.store.graph_store import GraphStore
from protgraph.data.store.loader import pack
from protgraph.evaluation.evaluation import EVALUATION_RESIDUES, evaluation_mode
from protgraph.model.build import ProteinModel
from protgraph.task.task import Task

__all__ = ["TrainingSetSummary", "describe_proteins", "summarize_training_set"]

_PROTEINS = 500  # largest number of stored training proteins
_FEWEST = 20  # fewer training proteins give no reliable threshold
_NEIGHBORS = 5
_QUANTILE = 0.99
_FLOOR = 0.05  # least scale of a column, relative to the largest


@dataclass(frozen=True, eq=False)
class TrainingSetSummary:
    """Descriptors of training proteins, and the largest usual distance from them.

    The descriptor of a protein is the mean and the standard deviation over its residues of each scalar column of the
    field that the head reads. The distance is the mean over the five nearest training proteins of the root mean square
    difference of standardized descriptors. The threshold is the larger of the 99 % quantiles of validation proteins and
    of training proteins, each without itself.
    """

    descriptors: Tensor  # ``(P, F)`` float32, standardized descriptors of training proteins
    mean: Tensor  # mean and scale: ``(F,)`` float32
    scale: Tensor
    threshold: Tensor  # scalar. Nearly all proteins of validation and training have a smaller distance

    def distance(self, descriptors: Tensor) -> Tensor:
        """Return the distance of proteins from the training set, ``(P,)``, of descriptors ``(P, F)``."""
        return _nearest((descriptors - self.mean) / self.scale, self.descriptors, are_known=False)

    def is_unlike(self, descriptors: Tensor) -> Tensor:
        """Return True, ``(P,)`` bool, for ``descriptors (P, F)`` beyond the threshold, and for undefined ones."""
        return ~(self.distance(descriptors) <= self.threshold)

    def tensors(self) -> dict[str, Tensor]:
        """Return the attributes by name, of the same shapes, to store them."""
        return {name: getattr(self, name).contiguous() for name in ("descriptors", "mean", "scale", "threshold")}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> TrainingSetSummary | None:
        """Return the summary of the content of :meth:`tensors`, of the same shapes; None if it is empty."""
        return cls(**tensors) if tensors else None


def describe_proteins(network: ProteinModel, f: Mapping[str, Any], batch: Data) -> Tensor:
    """Return mean and standard deviation of the scalars that the head reads, ``(P, F)`` float32 on the CPU.

    ``f``: output of ``network.embed(batch)``; the field that the head reads is ``(N, …)``.
    """
    field = network.spec.readout.get("h", "h")
    if field not in f:
        return torch.zeros(getattr(batch, "num_graphs", 1), 0)
    rows = residue_nodes(batch)
    h = f[field][rows].float().cpu()
    h = h.reshape(len(h), -1)[:, torch.tensor(network.fields[field].scalar_columns)]  # that rotations do not change
    sizes = torch.ones(1) * len(rows) if batch.batch is None else torch.bincount(batch.batch[rows]).cpu()
    parts = h.split(sizes.long().tolist())
    return torch.stack([torch.cat([part.mean(0), part.std(0, correction=0)]) for part in parts])


def summarize_training_set(
    network: ProteinModel, task: Task, splits: Mapping[str, GraphStore]
) -> TrainingSetSummary | None:
    """Describe the proteins of training and validation with a trained model."""
    train, inputs = splits["train"], task.inputs
    if len(train) < _FEWEST or inputs.corrupt is not None or inputs.noise or inputs.visible_types:
        return None
    if network.decoder is not None:
        return None
    known = _describe(network, train, task)
    mean, scale = known.mean(0), known.std(0, correction=0)
    if not known.isfinite().all() or known.size(1) == 0 or scale.max() < 1e-6:
        return None
    scale = scale.clamp(min=_FLOOR * float(scale.max()))
    known = (known - mean) / scale
    held_out = (_describe(network, splits["val"], task) - mean) / scale
    usual = [_nearest(known, known, are_known=True), _nearest(held_out, known, are_known=False)]
    threshold = max(float(distance.nan_to_num().quantile(_QUANTILE)) for distance in usual)
    return TrainingSetSummary(known, mean, scale, torch.tensor(threshold))


def _describe(network: ProteinModel, store: GraphStore, task: Task) -> Tensor:
    limit = 1 if task.target.level == "pair" else EVALUATION_RESIDUES  # memory grows with the square of the length
    step = -(-len(store) // _PROTEINS)
    batches = []
    with evaluation_mode(network) as device:
        members = pack(range(0, len(store), step), lambda i: int(store.sizes[i]), max_size=limit)
        for numbers in members:
            batch = store.collate(numbers).to(device)
            batches.append(describe_proteins(network, network.embed(batch), batch))
    return torch.cat(batches)


def _nearest(points: Tensor, known: Tensor, *, are_known: bool) -> Tensor:
    """Return the mean distance to the nearest known points, ``(P,)``; ``are_known``: without the point itself."""
    distance = torch.cdist(points, known) / max(known.size(1), 1) ** 0.5
    first = 1 if are_known else 0
    count = min(_NEIGHBORS, len(known) - first)
    nearest = distance.sort(dim=1).values[:, first : first + count]
    return nearest.mean(1)
