"""A model over the proteins of a store: logits, labels and metrics of a whole split, made once, on the CPU."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from protgraph.data.graph.protein_graph import collate
from protgraph.data.store.graph_store import GraphStore
from protgraph.data.store.loader import ProteinBatches
from protgraph.model.build import ProteinModel
from protgraph.task.losses import known_labels
from protgraph.task.metrics import OTHER_CHAIN, ResiduePairs, SplitPredictions, compute_metrics
from protgraph.task.task import Task

__all__ = ["Batches", "evaluate", "evaluation_mode", "evaluation_batch", "predict_split", "predict_pairs", "symmetrize_pairs"]

EVALUATION_RESIDUES = 8192  # a batch without gradients takes about a third of the memory


class Batches:
    """The batches of a store, one epoch after the other; each pass over a shuffled one has another order.

    A plain iterable: nothing that a training step does not need stands between the store and the model.

    Parameters
    ----------
    store : GraphStore
    max_nodes : int
        Residues a batch.
    shuffle : bool
        Another order every epoch; otherwise proteins of similar length are together.
    seed : int
        Of the order.
    """

    def __init__(self, store: GraphStore, *, max_nodes: int, shuffle: bool = False, seed: int = 0) -> None:
        self.store = store
        self.batches = ProteinBatches(store.sizes, max_nodes=max_nodes, shuffle=shuffle, bucket=not shuffle, seed=seed)

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[Batch]:
        return map(self.store.collate, self.batches)

    def set_epoch(self, epoch: int) -> None:
        """Which epoch's order comes next."""
        self.batches.set_epoch(epoch)


def predict_split(
    model: ProteinModel,
    store: GraphStore,
    task: Task,
    *,
    loss: Callable[[Tensor, Tensor], Tensor] | None = None,
    max_nodes: int = EVALUATION_RESIDUES,
) -> SplitPredictions:
    """What a model says about every protein of a store, without gradients, on the device that it lies on.

    Parameters
    ----------
    model : ProteinModel
        In any mode; it is in the same one afterwards.
    store : GraphStore
        Proteins with labels.
    task : Task
        What is asked of each protein: the same every time, whatever the batch.
    loss : callable, optional
        ``(logits, y)`` to a scalar; by default the task's. It is worked out here only where rows are left out, or where
        it is one of each protein.
    max_nodes : int
        Residues a batch; of a target per pair, proteins go one by one.
    """
    if task.target.level == "pair":
        return predict_pairs(model, store, task, loss or task.loss)
    logits, labels, chains, places, losses = [], [], [], [], []
    proteins = 0
    with evaluation_mode(model) as device:
        for members in Batches(store, max_nodes=max_nodes).batches:
            batch = evaluation_batch(store, members, task)
            logits.append(model(batch.to(device))["logits"].float().cpu())
            labels.append(batch.y.cpu())
            places.append(batch.pos.cpu())
            if task.loss_per_protein:
                lost = task.batch_loss(loss or task.loss, logits[-1], labels[-1], batch)
                losses.append(float(lost) * batch.num_graphs)
            chains.append(_chains(batch, proteins))
            proteins += batch.num_graphs
    per_residue = batch.y_level == "node"
    return SplitPredictions(
        torch.cat(logits),
        torch.cat(labels),
        torch.cat(chains) if per_residue else None,
        pos=torch.cat(places) if per_residue and model.target.kind == "vectors" else None,
        loss=sum(losses) / proteins if losses else None,
    )


def evaluate(model: ProteinModel, store: GraphStore, task: Task, *, threshold: Tensor | None = None) -> dict[str, float]:
    """Every metric of a task over the proteins of a store.

    Parameters
    ----------
    model : ProteinModel
    store : GraphStore
    task : Task
    threshold : Tensor, optional
        ``(C,)`` log-odds, as :func:`protgraph.task.best_threshold` chose it on validation; for yes/no labels.
    """
    return compute_metrics(task.metrics, predict_split(model, store, task).with_threshold(threshold))


def evaluation_batch(store: GraphStore, members: Sequence[int], task: Task) -> Batch:
    """The batch of these proteins as the task shows them in an evaluation, what it asks for in ``y``.

    Chance is a protein's own, by its name: no batch and no earlier evaluation changes what is asked of it.
    """
    if task.inputs.corrupt is None:
        return store.collate(members)
    graphs = []
    for i in members:
        generator = torch.Generator().manual_seed(zlib.crc32(store.names[i].encode()))
        graph, y = task.inputs.apply(store[i], generator, training=False)
        graph = copy.copy(graph)
        graph.y, graph.y_level = y, task.target.level
        graphs.append(graph)
    return collate(graphs)


def predict_pairs(model: ProteinModel, store: GraphStore, task: Task, loss: Callable[[Tensor, Tensor], Tensor]) -> SplitPredictions:
    """What a model says about the pairs of each protein, of which only those are kept that the metrics need.

    A pair is one row, i before j; its logits are the mean of both orders, its labels those of (i, j).
    """
    kept: list[SplitPredictions] = []
    total = number = 0.0
    with evaluation_mode(model) as device:
        for i in range(len(store)):
            graph = evaluation_batch(store, [i], task).to(device)
            said = symmetrize_pairs(model(graph)["logits"].float(), graph)
            one = replace(said, pairs=replace(said.pairs, protein=said.pairs.protein + i))
            count = int(known_labels(one.y).sum())
            total, number = total + float(loss(one.logits, one.y)) * count, number + count
            kept.append(one if task.select_rows is None else _rows(one, task.select_rows(one)))
    return SplitPredictions(
        torch.cat([o.logits for o in kept]),
        torch.cat([o.y for o in kept]),
        pairs=ResiduePairs(
            torch.cat([o.pairs.protein for o in kept]),
            torch.cat([o.pairs.separation for o in kept]),
            torch.cat([o.pairs.sizes for o in kept]),
        ),
        loss=total / max(number, 1),
    )


def symmetrize_pairs(logits: Tensor, graph: Data) -> SplitPredictions:
    """Each pair i < j of one protein once, on the CPU.

    Parameters
    ----------
    logits : Tensor
        ``(L², C)``, all ordered pairs, row-major.
    graph : Data
        The protein, with labels ``y`` ``(L², C)`` or without.
    """
    size = graph.num_nodes
    square = logits.view(size, size, -1)
    i, j = torch.triu_indices(size, size, 1, device=logits.device)
    said = ((square[i, j] + square[j, i]) / 2).cpu()  # (M, C)
    y = torch.full_like(said, torch.nan)
    if "y" in graph:
        y = graph.y.view(size, size, *graph.y.shape[1:])[i, j].cpu()
    apart = (graph.seq_pos[i] - graph.seq_pos[j]).abs()
    separation = torch.where(graph.chain[i] == graph.chain[j], apart, OTHER_CHAIN).cpu()
    return SplitPredictions(said, y, pairs=ResiduePairs(torch.zeros(len(said), dtype=torch.long), separation, torch.tensor([size])))


def _rows(o: SplitPredictions, rows: Tensor) -> SplitPredictions:
    pairs = replace(o.pairs, protein=o.pairs.protein[rows], separation=o.pairs.separation[rows])
    return replace(o, logits=o.logits[rows], y=o.y[rows], pairs=pairs)


@contextmanager
def evaluation_mode(model: ProteinModel) -> Iterator[torch.device]:
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
