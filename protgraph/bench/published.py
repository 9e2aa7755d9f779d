"""One row of a benchmark for a model with published weights: evaluated, never trained."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from protgraph.bench.rows import Job, Row
from protgraph.errors import OptionError

if TYPE_CHECKING:
    from protgraph.task.task import Task

__all__ = ["evaluate_job"]


def evaluate_job(job: Job) -> Row:
    """The published weights of a job's model on the test splits.

    Of tasks, ``inverse_folding`` is understood: sequences are drawn at a temperature of 0.1, residue after residue, and
    native types are scored as :func:`protgraph.design.assess` says.

    Raises
    ------
    OptionError
        The task asks for something else than residue types.
    """
    import torch

    from protgraph.design.assess import MODES_OF_METRICS, assess
    from protgraph.model import pretrained
    from protgraph.train.memory import peak_memory, reset_peak_memory
    from protgraph.train.prepare import as_dataset, as_task

    start = time.perf_counter()
    dataset = as_dataset(job.dataset)
    task = as_task(job.task, dataset)
    _check(job.model, task)
    reset_peak_memory(torch.device("cpu"))
    model = pretrained(job.graph)
    metrics, confusion, residues, spent = {}, {}, 0, 0.0
    for split in dataset.splits(job.task):
        if split in ("train", "val"):  # nothing is trained, nothing is chosen
            continue
        proteins = [dataset.read(example) for example in dataset.examples(job.task, split)]
        began = time.perf_counter()
        found = assess(model, proteins, seed=job.seed)
        spent, residues = spent + time.perf_counter() - began, residues + found.residues
        metrics[split], confusion[split] = found.metrics, found.confusion.tolist()
    return replace(
        Row.of(job),
        metrics=metrics,
        monitor=next(iter(MODES_OF_METRICS)),
        modes=MODES_OF_METRICS,
        parameters=model.num_parameters,
        residues_per_second=residues / spent,
        seconds=time.perf_counter() - start,
        peak_memory_mib=peak_memory(torch.device("cpu")),
        confusion=confusion,
    )


def _check(model: str, task: Task) -> None:
    from protgraph.structure import ALPHABET

    if task.target.level != "node" or task.target.names != tuple(ALPHABET[: task.target.size]):
        raise OptionError(
            f"the published weights of {model!r} tell residue types; task {task.name!r} asks for something else.\n"
            "Name a variant without weights to train it on this task."
        )
