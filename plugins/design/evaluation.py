"""Evaluate sequence design: perplexity and recovery of native sequences, and the confusion matrix of types.

In a benchmark, models with a decoder are evaluated by :func:`evaluate_dataset` (group ``protgraph.evaluators``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
from protgraph_plugins.design.run import design_sequences, score_sequences
from protgraph_plugins.design.spec import DesignSpec

from protgraph.data import Dataset
from protgraph.errors import OptionError
from protgraph.featurize import Failure, ModelInputs, dataset_requests, iter_graphs, successes
from protgraph.model import ProteinModel
from protgraph.structure import Residues
from protgraph.structure.residues import UNKNOWN

__all__ = ["DatasetMetrics", "DesignMetrics", "evaluate_dataset", "evaluate_design"]

ENTRY_POINTS = {"protgraph.evaluators": {"decoder": "evaluate_dataset"}}


@dataclass(frozen=True, eq=False)
class DesignMetrics:
    """Results of a model on proteins with known sequences.

    Parameters
    ----------
    metrics : dict of str to float
        ``perplexity`` is exp of the mean teacher-forced ``-log p`` over all residues, with log p averaged over random
        orders; ``perplexity_mean`` is the mean of the perplexities of chains. ``recovery`` is the fraction of all
        residues with the native type in the sampled sequences; ``recovery_mean`` and ``recovery_median`` are over
        chains.
    confusion : ndarray
        ``(20, 20)`` int64: counts of native types (rows) and sampled types (columns).
    residues : int
        Number of evaluated residues: a complete backbone and one of the 20 types.
    """

    metrics: dict[str, float]
    confusion: np.ndarray
    residues: int


def evaluate_design(
    model: ProteinModel,
    proteins: Sequence[Residues],
    *,
    samples: int = 1,
    temperature: float = 0.1,
    orders: int = 4,
    seed: int = 0,
) -> DesignMetrics:
    """Score the native sequences of proteins, and sample sequences for all their residues.

    Parameters
    ----------
    model : ProteinModel
        A model that predicts residue types.
    proteins : sequence of Residues
    samples : int
        Sampled sequences per protein, for recovery.
    temperature : float
        Sampling temperature.
    orders : int
        Random decoding orders per protein, for perplexity.
    seed : int

    Raises
    ------
    OptionError
        ``proteins`` is empty.
    """
    if not proteins:
        raise OptionError("evaluate_design: no proteins given.")
    losses, recoveries, confusion = [], [], np.zeros((UNKNOWN, UNKNOWN), np.int64)
    for scores in score_sequences(model, proteins, orders=orders, seed=seed):
        log_probs = scores.sequence_log_probs
        mask = (scores.residues.aatype != UNKNOWN) & ~np.isnan(log_probs)
        losses += [-log_probs[rows] for rows in _rows_by_chain(scores.residues, mask)]
    for design in design_sequences(model, proteins, DesignSpec(), copies=samples, temperature=temperature, seed=seed):
        native = design.residues.aatype
        mask = design.designed & (native != UNKNOWN)
        sampled = design.aatype[:, mask]
        recoveries += [
            (design.aatype[:, rows] == native[rows]).mean() for rows in _rows_by_chain(design.residues, mask)
        ]
        np.add.at(confusion, (np.broadcast_to(native[mask], sampled.shape), sampled), 1)
    all_losses = np.concatenate(losses)
    metrics = {
        "perplexity": np.exp(all_losses.mean()),
        "recovery": np.trace(confusion) / confusion.sum(),
        "recovery_median": np.median(recoveries),
        "perplexity_mean": np.mean([np.exp(chain.mean()) for chain in losses]),
        "recovery_mean": np.mean(recoveries),
    }
    return DesignMetrics({name: float(value) for name, value in metrics.items()}, confusion, len(all_losses))


def _rows_by_chain(residues: Residues, mask: np.ndarray) -> list[np.ndarray]:
    """Return the rows of each chain in a mask, without empty chains."""
    rows = [np.flatnonzero((residues.chain == name) & mask) for name in residues.chain_names]
    return [chain for chain in rows if len(chain)]


@dataclass
class DatasetMetrics:
    """Results on the splits of a dataset.

    ``residues`` is the number of evaluated residues; ``failures`` are proteins that cannot be read or featurized.
    """

    metrics: dict[str, dict[str, float]] = field(default_factory=dict)
    confusion: dict[str, list[list[int]]] = field(default_factory=dict)
    residues: int = 0
    failures: list[Failure] = field(default_factory=list)


def evaluate_dataset(
    model: ProteinModel, dataset: Dataset, task: str, *, without: Collection[str] = (), seed: int = 0
) -> DatasetMetrics:
    """Evaluate each split of a dataset with :func:`evaluate_design`; sequences are sampled at a temperature of 0.1.

    Parameters
    ----------
    model : ProteinModel
    dataset : Dataset
    task : str
        Task whose splits and proteins are used.
    without : collection of str
        Splits to skip.
    seed : int
    """
    result = DatasetMetrics()
    examples = [example for example in dataset.examples(task) if example.split not in without]
    read = dataset.read_options.with_ligands(model.plan.needs_ligands)
    requests = dataset_requests(dataset, examples, read)
    graphs = iter_graphs(requests, model.plan, read=read, step=ModelInputs())
    residues = {graph.protein: graph.residues for graph in successes(graphs, result.failures)}
    for split in dataset.splits(task):
        proteins = [residues[e.id] for e in examples if e.split == split and e.id in residues]
        if proteins:
            design = evaluate_design(model, proteins, seed=seed)
            result.residues += design.residues
            result.metrics[split], result.confusion[split] = design.metrics, design.confusion.tolist()
    return result
