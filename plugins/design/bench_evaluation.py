"""Evaluate models of sequence design in a benchmark: perplexity, recovery and confusion of types on each split."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from protgraph.bench.rows import BenchJob, BenchRow
from protgraph.errors import OptionError

if TYPE_CHECKING:
    from protgraph.data.datasets.dataset import Dataset, Example
    from protgraph.featurize import Failure
    from protgraph.model.build import ProteinModel
    from protgraph.structure import Residues
    from protgraph.task.task import Task

__all__ = ["evaluate_published", "with_sampled_sequences"]


def evaluate_published(job: BenchJob) -> BenchRow:
    """Evaluate the published weights of a job's model on the test splits, without training.

    The task must predict residue types (``inverse_folding``); see :func:`with_sampled_sequences`.

    Raises
    ------
    OptionError
        The task predicts something else.
    """
    import torch

    from protgraph.labels.loading import resolve_task
    from protgraph.model import pretrained
    from protgraph.process_memory import peak_memory, reset_peak_memory

    start = time.perf_counter()
    dataset = job.data()
    task = resolve_task(job.task, dataset)
    _check_residue_types(job.model, task)
    reset_peak_memory(torch.device("cpu"))
    model = pretrained(job.graph)
    row = replace(BenchRow.of(job, task), parameters=model.num_parameters)
    row, residues, seconds = with_sampled_sequences(row, dataset, model, without=("train", "val"))
    return replace(
        row,
        residues_per_second=residues / seconds,
        seconds=time.perf_counter() - start,
        peak_memory_mib=peak_memory(torch.device("cpu")),
    )


def with_sampled_sequences(
    row: BenchRow, dataset: Dataset, model: ProteinModel, *, without: Collection[str]
) -> tuple[BenchRow, int, float]:
    """Add the metrics and the confusion of sampled sequences to the row of a model with a decoder.

    See :func:`protgraph.design.evaluate_design`. Sequences are sampled residue by residue at a temperature of 0.1.

    Parameters
    ----------
    row : BenchRow
    dataset : Dataset
        Proteins that cannot be read or featurized are added to ``failures`` of the row.
    model : ProteinModel
    without : collection of str
        Splits to skip.

    Returns
    -------
    BenchRow, int, float
        The row, the number of sampled residues, and seconds.
    """
    from protgraph.design import evaluate_design

    failures = list(row.failures)
    metrics, confusion, residues = {}, {}, 0
    start = time.perf_counter()
    examples = [example for example in dataset.examples(row.task) if example.split not in without]
    usable = _usable(dataset, examples, model, failures)
    for split in dataset.splits(row.task):
        proteins = [usable[example.id] for example in examples if example.split == split and example.id in usable]
        if not proteins:
            continue
        result = evaluate_design(model, proteins, seed=row.seed)
        residues += result.residues
        metrics[split], confusion[split] = result.metrics, result.confusion.tolist()
    row = replace(row, metrics=metrics, confusion=confusion, failures=tuple(dict.fromkeys(failures)))
    return row, residues, time.perf_counter() - start


def _usable(
    dataset: Dataset, examples: Sequence[Example], model: ProteinModel, failures: list[Failure]
) -> dict[str, Residues]:
    """Return the proteins that can be featurized, by id; append the others to ``failures``."""
    from protgraph.featurize import ModelInputs, iter_graphs, successes
    from protgraph.featurize.store_requests import dataset_requests

    read = dataset.read_options.with_ligands(model.plan.needs_ligands)
    requests = dataset_requests(dataset, examples, read)
    results = iter_graphs(requests, model.plan, read=read, step=ModelInputs())
    return {result.protein: result.residues for result in successes(results, failures)}


def _check_residue_types(model: str, task: Task) -> None:
    from protgraph.design import predicts_residue_types

    if not predicts_residue_types(task.target):
        raise OptionError(
            f"model {model!r} has published weights for residue types; task {task.name!r} has another target. Use a "
            "variant without weights, which is trained on the task."
        )
