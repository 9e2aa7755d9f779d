"""A model over the proteins of a store: logits, labels and metrics of a whole split, made once, on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch_geometric.data import Batch

from protgraph.data.loader import ProteinBatches
from protgraph.data.store import Store
from protgraph.model.build import GraphModel
from protgraph.task.metric import Outcome, score
from protgraph.task.task import Task

__all__ = ["Batches", "evaluate", "evaluating", "outcome"]

EVALUATION_RESIDUES = 8192  # a batch without gradients takes about a third of the memory


class Batches:
    """The batches of a store, one epoch after the other; each pass over a shuffled one has another order.

    A plain iterable: nothing that a training step does not need stands between the store and the model.

    Parameters
    ----------
    store : Store
    max_nodes : int
        Residues a batch.
    shuffle : bool
        Another order every epoch; otherwise proteins of similar length are together.
    seed : int
        Of the order.
    """

    def __init__(self, store: Store, *, max_nodes: int, shuffle: bool = False, seed: int = 0) -> None:
        self.store = store
        self.batches = ProteinBatches(store.sizes, max_nodes=max_nodes, shuffle=shuffle, bucket=not shuffle, seed=seed)

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[Batch]:
        return map(self.store.collate, self.batches)

    def set_epoch(self, epoch: int) -> None:
        """Which epoch's order comes next."""
        self.batches.set_epoch(epoch)


def outcome(model: GraphModel, store: Store, *, max_nodes: int = EVALUATION_RESIDUES) -> Outcome:
    """What a model says about every protein of a store, without gradients, on the device that it lies on.

    Parameters
    ----------
    model : GraphModel
        In any mode; it is in the same one afterwards.
    store : Store
        Proteins with labels.
    max_nodes : int
        Residues a batch.
    """
    logits, labels, chains, places = [], [], [], []
    proteins = 0
    with evaluating(model) as device:
        for batch in Batches(store, max_nodes=max_nodes):
            logits.append(model(batch.to(device))["logits"].float().cpu())
            labels.append(batch.y.cpu())
            places.append(batch.pos.cpu())
            chains.append(_chains(batch, proteins))
            proteins += batch.num_graphs
    per_residue = batch.y_level == "node"
    return Outcome(
        torch.cat(logits),
        torch.cat(labels),
        torch.cat(chains) if per_residue else None,
        pos=torch.cat(places) if per_residue and model.target.kind == "vectors" else None,
    )


def evaluate(model: GraphModel, store: Store, task: Task, *, threshold: Tensor | None = None) -> dict[str, float]:
    """Every metric of a task over the proteins of a store.

    Parameters
    ----------
    model : GraphModel
    store : Store
    task : Task
    threshold : Tensor, optional
        ``(C,)`` log-odds, as :func:`protgraph.task.best_threshold` chose it on validation; for yes/no labels.
    """
    return score(task.metrics, outcome(model, store).with_threshold(threshold))


@contextmanager
def evaluating(model: GraphModel) -> Iterator[torch.device]:
    """The model in evaluation mode, without gradients; its device. Afterwards it is in the mode that it was in."""
    before = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield next((p.device for p in model.parameters()), torch.device("cpu"))
    finally:
        model.train(before)


def _chains(batch: Batch, first: int) -> Tensor:
    """``(N,)`` int64 on the CPU, one number a chain of a protein; proteins are counted from ``first``."""
    protein, chain = batch.batch.cpu() + first, batch.chain.cpu()
    return protein * (1 << 32) + chain
