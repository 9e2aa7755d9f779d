"""Rows of models that sample sequences: native sequences are scored and new ones sampled, split by split."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from protgraph.bench.rows import BenchJob, BenchRow
from protgraph.errors import OptionError

if TYPE_CHECKING:
    from protgraph.data.datasets.dataset import Dataset, Example
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

    from protgraph.model import pretrained
    from protgraph.process_memory import peak_memory, reset_peak_memory
    from protgraph.train.resolve import resolve_task

    start = time.perf_counter()
    dataset = job.data()
    task = resolve_task(job.task, dataset)
    _check(job.model, task)
    reset_peak_memory(torch.device("cpu"))
    model = pretrained(job.graph)
    row = replace(
        BenchRow.of(job),
        monitor=task.monitor,
        modes={metric.name: metric.mode for metric in task.metrics},
        parameters=model.num_parameters,
    )
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
        Proteins that cannot be read or featurized are added to ``left_out`` of the row.
    model : ProteinModel
    without : collection of str
        Splits to skip.

    Returns
    -------
    BenchRow, int, float
        The row, the number of sampled residues, and seconds.
    """
    from protgraph.design.evaluate import evaluate_design

    left_out = list(row.left_out)
    metrics, confusion, residues = {}, {}, 0
    start = time.perf_counter()
    for split in dataset.splits(row.task):
        if split in without:
            continue
        proteins = _usable(dataset, dataset.examples(row.task, split), model, left_out)
        if not proteins:
            continue
        result = evaluate_design(model, proteins, seed=row.seed)
        residues += result.residues
        metrics[split], confusion[split] = result.metrics, result.confusion.tolist()
    row = replace(row, metrics=metrics, confusion=confusion, left_out=tuple(dict.fromkeys(left_out)))
    return row, residues, time.perf_counter() - start


def _usable(dataset: Dataset, examples: Sequence[Example], model: ProteinModel, left_out: list[str]) -> list[Residues]:
    """Return the proteins that can be featurized; append the others to ``left_out`` with the reason."""
    from protgraph.featurize import Failure

    usable = []
    for example in examples:
        try:
            residues = dataset.read(example)
            model.plan.precompute(residues)
        except Exception as e:  # noqa: BLE001 -- parsers and plugin featurizers may raise anything; the others continue
            left_out.append(f"{example.id}: {Failure.of(example.path, example.id, e).reason}")
            continue
        usable.append(residues)
    return usable


def _check(model: str, task: Task) -> None:
    from protgraph.structure import ALPHABET

    if task.target.level != "node" or task.target.names != tuple(ALPHABET[: task.target.size]):
        raise OptionError(
            f"model {model!r} has published weights for residue types, task {task.name!r} has another target. Use a "
            "variant without weights, which is trained on the task."
        )
