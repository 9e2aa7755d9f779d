"""Evaluate a model on a split: predictions without gradients, gathered on the CPU, and metrics."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from protgraph.argument_types import check_arguments
from protgraph.data.graph.protein_graph import ProteinGraph, collate
from protgraph.data.store.graph_store import GraphStore
from protgraph.data.store.loader import ProteinBatches
from protgraph.errors import CheckpointError
from protgraph.model.build import ProteinModel
from protgraph.task.losses import known_labels
from protgraph.task.metrics import compute_metrics
from protgraph.task.predictions import OTHER_CHAIN, ResiduePairs, SplitPredictions
from protgraph.task.task import Task

__all__ = [
    "BatchPredictions",
    "collate_evaluation",
    "device_of",
    "evaluate",
    "evaluation_batches",
    "evaluation_mode",
    "join_predictions",
    "predict_batch",
    "predict_ensemble",
    "predict_split",
    "symmetrize_pairs",
]

EVALUATION_RESIDUES = 8192  # a batch without gradients needs about a third of the memory
_READ_BY_METRICS = ("chain", "edge_index", "name", "pos", "seq_pos", "y", "y_level")
_CHAINS = 1 << 32  # larger than the number of chains of a protein


@dataclass(frozen=True, eq=False)
class BatchPredictions:
    """Predictions of one evaluation batch, on the CPU."""

    rows: SplitPredictions  # logits and labels. Chains and pairs count the proteins of this batch from 0
    proteins: int  # number of proteins
    # loss and weight: mean loss and its weight in the mean over the split. None if the loss is computed from all rows
    # together
    loss: float | None = None
    weight: float | None = None


@check_arguments("model", "store", "task")
def evaluate(
    model: ProteinModel, store: GraphStore, task: Task, *, threshold: Tensor | None = None
) -> dict[str, float]:
    """Compute every metric of a task over the proteins of a store.

    Parameters
    ----------
    threshold : Tensor, optional
        ``(C,)`` log-odds for yes/no labels, as :func:`protgraph.task.best_threshold` chose it on validation.
    """
    predictions = predict_split(model, store, task).with_threshold(threshold)
    return compute_metrics(task.metrics, predictions, task=task.name)


def predict_split(
    model: ProteinModel,
    store: GraphStore,
    task: Task,
    *,
    loss: Callable[[Tensor, Tensor], Tensor] | None = None,
    max_nodes: int = EVALUATION_RESIDUES,
) -> SplitPredictions:
    """Predict every protein of a store, without gradients, on the device of the model.

    ``loss``: ``(logits, y)`` to a scalar; default: the loss of the task. It is computed here only if the task drops
    rows or has one loss per protein.
    """
    batches = evaluation_batches(store, task, max_nodes=max_nodes)
    with evaluation_mode(model) as device:
        collated = (collate_evaluation(store, members, task) for members in batches)
        parts = [predict_batch(model, batch.to(device), task, loss=loss) for batch in collated]
    joined = join_predictions(parts)
    order = torch.tensor([i for members in batches for i in members])
    return replace(joined, protein=order[joined.protein])


def predict_ensemble(
    members: Sequence[ProteinModel], stores: Mapping[str, GraphStore], task: Task
) -> dict[str, SplitPredictions]:
    """Predict every protein of each split with the mean logits of the members."""
    means = {}
    for split, store in stores.items():
        of_members = [predict_split(member, store, task) for member in members]
        if any(part.logits.shape != of_members[0].logits.shape for part in of_members):
            raise CheckpointError(f"members of an ensemble predict different rows of the split {split!r}.")
        logits = torch.stack([part.logits for part in of_members]).mean(0)
        means[split] = replace(of_members[0], logits=logits)
    return means


def evaluation_batches(store: GraphStore, task: Task, *, max_nodes: int = EVALUATION_RESIDUES) -> list[list[int]]:
    """Return the protein numbers of each evaluation batch: similar lengths together, pairs one protein at a time."""
    if task.target.level == "pair":
        return [[i] for i in range(len(store))]
    return list(ProteinBatches(store.sizes, max_nodes=max_nodes, bucket=True))


def collate_evaluation(
    store: GraphStore, members: Sequence[int], task: Task, *, fields: Collection[str] | None = None
) -> Batch:
    """Collate proteins as the task corrupts them in evaluation, with labels in ``y``.

    The random generator is seeded by the name of each protein, so that labels do not depend on the batch. ``fields``
    are those that the model reads, of a task that does not corrupt its inputs; default: all.
    """
    if task.inputs.corrupt is None:
        return store.collate(members, fields=None if fields is None else {*fields, *_READ_BY_METRICS})
    return collate([_corrupted(store, i, task) for i in members])


def _corrupted(store: GraphStore, i: int, task: Task) -> ProteinGraph:
    generator = torch.Generator().manual_seed(zlib.crc32(store.names[i].encode()))
    graph, y = task.inputs.apply(store[i], generator, training=False)
    graph = copy.copy(graph)
    graph.y, graph.y_level = y, task.target.level
    return graph


def predict_batch(
    model: ProteinModel, batch: Batch, task: Task, *, loss: Callable[[Tensor, Tensor], Tensor] | None = None
) -> BatchPredictions:
    """Predict one batch of :func:`collate_evaluation`, on the device of the model."""
    loss = loss or task.loss
    logits = model(batch)["logits"].float()
    if task.target.level == "pair":
        rows = symmetrize_pairs(logits, batch)
        labels = int(known_labels(rows.y).sum())
        pair_loss = float(task.compute_loss(loss, rows.logits, rows.y))
        chosen = rows if task.select_rows is None else _select(rows, task.select_rows(rows))
        return BatchPredictions(chosen, 1, pair_loss, labels)
    logits, y = logits.cpu(), batch.y.cpu()
    mean: float | None = None
    weight: float | None = None
    if task.loss_per_protein:
        mean, weight = float(task.batch_loss(loss, logits, y, batch)), batch.num_graphs
    per_residue = batch.y_level == "node"
    chain = batch.batch.cpu() * _CHAINS + batch.chain.cpu() if per_residue and "chain" in batch else None
    pos = batch.pos.cpu() if per_residue and task.target.kind == "vectors" else None
    protein = _protein_of_rows(batch).cpu()
    scale = None if model.head.scale is None else model.head.scale.cpu()
    rows = SplitPredictions(logits, y, chain, pos=pos, protein=protein, scale=scale)
    return BatchPredictions(rows, batch.num_graphs, mean, weight)


def _protein_of_rows(batch: Batch) -> Tensor:
    """Return the number of the protein of each label of nodes, edges or proteins."""
    if batch.y_level == "graph":
        return torch.arange(batch.num_graphs)
    return batch.batch if batch.y_level == "node" else batch.batch[batch.edge_index[1]]


def join_predictions(batches: Sequence[BatchPredictions]) -> SplitPredictions:
    """Concatenate the predictions of batches, and number proteins over all of them."""
    rows = [batch.rows for batch in batches]
    chains: list[Tensor] = []
    proteins: list[Tensor] = []
    first = 0
    for batch in batches:
        if batch.rows.chain is not None:
            chains.append(batch.rows.chain + first * _CHAINS)
        proteins.append(batch.rows.protein_of_rows + first)
        first += batch.proteins
    protein = torch.cat(proteins)
    positions = [r.pos for r in rows if r.pos is not None]
    return SplitPredictions(
        torch.cat([r.logits for r in rows]),
        torch.cat([r.y for r in rows]),
        torch.cat(chains) if chains else None,
        pos=None if rows[0].pos is None else torch.cat(positions),
        pairs=_join_pairs([r.pairs for r in rows if r.pairs is not None], protein),
        loss=_mean_loss(batches),
        protein=protein,
        scale=rows[0].scale,
    )


def _join_pairs(pairs: Sequence[ResiduePairs], protein: Tensor) -> ResiduePairs | None:
    """Concatenate the pairs of batches; None without any."""
    if not pairs:
        return None
    return ResiduePairs(protein, torch.cat([p.separation for p in pairs]), torch.cat([p.sizes for p in pairs]))


def _mean_loss(batches: Sequence[BatchPredictions]) -> float | None:
    """Return the weighted mean of the losses of batches; None if no batch has a loss."""
    total, total_weight, has_loss = 0.0, 0.0, False
    for batch in batches:
        if batch.loss is not None and batch.weight is not None:
            total += batch.loss * batch.weight
            total_weight += batch.weight
            has_loss = True
    return total / max(total_weight, 1) if has_loss else None


def symmetrize_pairs(logits: Tensor, graph: Data) -> SplitPredictions:
    """Average both orders of each pair i < j of one protein; return one row per pair, on the CPU.

    ``logits``: ``(L², C)``, all ordered pairs, row-major. ``graph``: the protein, with labels ``y`` ``(L², C)`` of the
    ordered pairs (i, j) or without.
    """
    size = graph.num_nodes
    square = logits.view(size, size, -1)
    i, j = torch.triu_indices(size, size, 1, device=logits.device)
    mean = ((square[i, j] + square[j, i]) / 2).cpu()  # (M, C)
    y = torch.full_like(mean, torch.nan)
    if "y" in graph:
        y = graph.y.view(size, size, *graph.y.shape[1:])[i, j].cpu()
    distance = (graph.seq_pos[i] - graph.seq_pos[j]).abs()
    separation = torch.where(graph.chain[i] == graph.chain[j], distance, OTHER_CHAIN).cpu()
    protein = torch.zeros(len(mean), dtype=torch.long)
    pairs = ResiduePairs(protein, separation, torch.tensor([size]))
    return SplitPredictions(mean, y, pairs=pairs, protein=protein)


def _select(predictions: SplitPredictions, rows: Tensor) -> SplitPredictions:
    pairs = predictions.pairs
    assert pairs is not None  # contract: of symmetrize_pairs
    protein = pairs.protein[rows]
    return replace(
        predictions,
        logits=predictions.logits[rows],
        y=predictions.y[rows],
        pairs=replace(pairs, protein=protein, separation=pairs.separation[rows]),
        protein=protein,
    )


@contextmanager
def evaluation_mode(model: ProteinModel) -> Iterator[torch.device]:
    """Switch to evaluation mode without gradients, yield the device, and restore the training mode."""
    before = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield device_of(model)
    finally:
        model.train(before)


def device_of(model: ProteinModel) -> torch.device:
    """Return the device of the parameters of a model; the CPU without any."""
    return next((p.device for p in model.parameters()), torch.device("cpu"))
