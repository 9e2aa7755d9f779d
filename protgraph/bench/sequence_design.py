"""Rows of models that draw sequences residue after residue: native types are scored, others drawn, split by split."""

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

__all__ = ["evaluate_published", "with_drawn"]


def evaluate_published(job: BenchJob) -> BenchRow:
    """The published weights of a job's model on the test splits; nothing is trained, nothing is chosen.

    Of tasks, ``inverse_folding`` is understood; see :func:`with_drawn`.

    Raises
    ------
    OptionError
        The task asks for something else than residue types.
    """
    import torch

    from protgraph.model import pretrained
    from protgraph.train.peak_memory import peak_memory, reset_peak_memory
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
    row, residues, seconds = with_drawn(row, dataset, model, without=("train", "val"))
    return replace(
        row,
        residues_per_second=residues / seconds,
        seconds=time.perf_counter() - start,
        peak_memory_mib=peak_memory(torch.device("cpu")),
    )


def with_drawn(row: BenchRow, dataset: Dataset, model: ProteinModel, *, without: Collection[str]) -> tuple[BenchRow, int, float]:
    """The row with metrics and confusion as :func:`protgraph.design.evaluate` gives them, for a model with a decoder.

    Sequences are drawn at a temperature of 0.1, residue after residue.

    Parameters
    ----------
    row : BenchRow
    dataset : Dataset
        Proteins that cannot be read, or that the model cannot take, are added to those that the row leaves out.
    model : ProteinModel
    without : collection of str
        Splits that are left out.

    Returns
    -------
    BenchRow, int, float
        The row, how many residues were drawn, and seconds.
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
        found = evaluate_design(model, proteins, seed=row.seed)
        residues += found.residues
        metrics[split], confusion[split] = found.metrics, found.confusion.tolist()
    row = replace(row, metrics=metrics, confusion=confusion, left_out=tuple(dict.fromkeys(left_out)))
    return row, residues, time.perf_counter() - start


def _usable(dataset: Dataset, examples: Sequence[Example], model: ProteinModel, left_out: list[str]) -> list[Residues]:
    """The proteins that the model can take; the others are noted with the reason."""
    from protgraph.train import Failure

    found = []
    for example in examples:
        try:
            residues = dataset.read(example)
            model.plan.precompute(residues)
        except Exception as e:  # noqa: BLE001 -- parsers and foreign featurizers raise many things; the others go on
            left_out.append(f"{example.id}: {Failure.of(example.path, example.id, e).reason}")
            continue
        found.append(residues)
    return found


def _check(model: str, task: Task) -> None:
    from protgraph.structure import ALPHABET

    if task.target.level != "node" or task.target.names != tuple(ALPHABET[: task.target.size]):
        raise OptionError(
            f"the published weights of {model!r} tell residue types; task {task.name!r} asks for something else.\n"
            "Name a variant without weights to train it on this task."
        )
