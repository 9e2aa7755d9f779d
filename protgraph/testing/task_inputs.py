"""Labels and predictions of the fixture proteins for a task: the inputs of its loss and metrics."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Generator, Tensor
from torch_geometric.data import Data

from protgraph.data.datasets.target import Target
from protgraph.data.graph.protein_graph import ProteinGraph, collate
from protgraph.featurize.plan import FeaturePlan
from protgraph.registry.component import component
from protgraph.structure import Residues
from protgraph.task.predictions import OTHER_CHAIN, ResiduePairs, SplitPredictions
from protgraph.task.task import Task
from protgraph.testing.protein_fixtures import copy_residues, proteins

__all__ = ["TaskInputs", "random_labels"]

_CERTAIN = 20.0  # log-odds of a prediction without doubt
_ERROR = 3.0  # standard deviation of random logits


@dataclass(frozen=True, eq=False)
class TaskInputs:
    """Proteins with the labels of a task, and predictions of them."""

    task: Task

    @cached_property
    def residues(self) -> tuple[Residues, ...]:
        """The proteins."""
        return tuple(copy_residues(residues) for residues in proteins(ligands=True))

    def labels(self, residues: Residues) -> np.ndarray:
        """Return the derived labels of one protein, ``(M,)`` classes or ``(M, …)`` values."""
        return self.task.labels(residues, seen=self.task.inputs.visible(residues, residues.name))

    @property
    def _is_random(self) -> bool:
        """True for classes and values, whose labels are random: a small protein may have residues of one class only."""
        is_plain = self.task.inputs.corrupt is None and not self.task.stored.is_geometric
        return is_plain or not self.task.derives_labels

    @cached_property
    def graphs(self) -> list[ProteinGraph]:
        """Graphs with the labels of the loss and the metrics."""
        plan = FeaturePlan([component("knn", k=6)])  # some tasks remove edges
        made, stored = [], self.task.stored
        for number, residues in enumerate(self.residues):
            graph = plan.precompute(residues)
            labels = random_labels(stored, len(residues), seed=number) if self._is_random else self.labels(residues)
            graph.y, graph.y_level = torch.from_numpy(labels), stored.level
            graph, y = self.task.inputs.apply(graph, Generator().manual_seed(0), training=False)
            graph.y, graph.y_level = y, self.task.target.level
            made.append(graph)
        return made

    @cached_property
    def batch(self) -> Data:
        """All graphs as one batch."""
        return collate(self.graphs)

    @property
    def y(self) -> Tensor:
        """Labels of the batch, ``(M,)`` classes or ``(M, …)`` values."""
        return torch.cat([graph.y for graph in self.graphs])

    def perfect(self) -> Tensor:
        """Return the logits, ``(M, C)`` or ``(M, C, 3)``, of a model that is certain of each known label."""
        y, target = self.y, self.task.target
        if target.kind == "classification":
            return _CERTAIN * torch.nn.functional.one_hot(y.clamp(min=0), target.size) * (y >= 0)[:, None]
        if target.kind == "multilabel":
            return _CERTAIN * (2 * y.nan_to_num(0.5) - 1)
        return y.nan_to_num(0.0)

    def random(self, seed: int) -> Tensor:
        """Return random logits, ``(M, C)`` or ``(M, C, 3)``; for values and points, the labels with random errors."""
        noise = torch.randn(self.perfect().shape, generator=Generator().manual_seed(seed))
        if self.task.target.kind in ("classification", "multilabel"):
            return _ERROR * noise
        return self.perfect() + _ERROR * noise

    def predictions(self, logits: Tensor) -> SplitPredictions:
        """Return logits, ``(M, C)`` or ``(M, C, 3)``, and labels as the metrics get them."""
        if self.task.target.level == "pair":
            return self._pairs(logits)
        per_residue = self.task.target.level == "node"
        chain = self.batch.batch * 1000 + self.batch.chain if per_residue else None
        pos = self.batch.pos if per_residue and self.task.target.kind == "vectors" else None
        protein = self.batch.batch if per_residue else torch.arange(len(self.graphs))
        return SplitPredictions(logits.float(), self.y, chain, pos=pos, protein=protein)

    def _pairs(self, logits: Tensor) -> SplitPredictions:
        """Keep one row per pair i < j of each protein."""
        sizes = [graph.num_nodes for graph in self.graphs]
        rows, separations, first = [], [], 0
        for graph, size in zip(self.graphs, sizes, strict=True):
            i, j = torch.triu_indices(size, size, 1)
            rows.append(first + i * size + j)
            distance = (graph.seq_pos[i] - graph.seq_pos[j]).abs()
            separations.append(torch.where(graph.chain[i] == graph.chain[j], distance, OTHER_CHAIN))
            first += size * size
        protein = torch.arange(len(sizes)).repeat_interleave(torch.tensor([len(r) for r in rows]))
        chosen = torch.cat(rows)
        pairs = ResiduePairs(protein, torch.cat(separations), torch.tensor(sizes))
        return SplitPredictions(logits[chosen].float(), self.y[chosen], pairs=pairs)


def random_labels(target: Target, residues: int, *, seed: int) -> np.ndarray:
    """Return labels of a protein: every class or both labels occur, and one row is unknown if there are several.

    They are ``(M,)`` int64 classes or ``(M, *target.shape)`` float32 for M rows of the target's level. A label per
    protein is the class or yes/no label that the seed selects.
    """
    rows = {"node": residues, "graph": 1, "pair": residues**2}.get(target.level, 4 * residues)
    rng = np.random.default_rng(seed)
    if rows == 1 and target.kind == "classification":
        return np.array([seed % target.size])
    if rows == 1 and target.kind == "multilabel":
        return np.full((1, target.size), seed % 2, np.float32)
    if target.kind == "classification":
        y = rng.integers(0, target.size, rows)
        y[: min(rows, target.size)] = np.arange(min(rows, target.size))
        y[target.size : target.size + 1] = -1
        return y
    y = rng.normal(size=(rows, *target.shape)).astype(np.float32)
    if target.kind == "multilabel":
        y = (y > 0).astype(np.float32)
        y[0], y[1:2] = 0, 1
    y[2:3] = np.nan
    return y
