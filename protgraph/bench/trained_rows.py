"""Test models in a benchmark that were trained elsewhere: checkpoints and published weights."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from protgraph import registry
from protgraph.bench.rows import BenchJob, BenchRow
from protgraph.bench.run_predictions import save_predictions
from protgraph.errors import OptionError

if TYPE_CHECKING:
    from torch import Tensor

    from protgraph.checkpoint.checkpoint_file import Checkpoint
    from protgraph.data.datasets.dataset import Dataset
    from protgraph.model import ProteinModel
    from protgraph.task.predictions import SplitPredictions
    from protgraph.task.task import Task

__all__ = ["SampledRow", "calibrated", "evaluate_published", "evaluate_trained", "evaluated_by_sampling"]


def evaluate_trained(job: BenchJob) -> BenchRow:
    """Evaluate a trained model on the validation split and on every tested split, with its own threshold.

    Predictions are of the mean logits of its members, calibrated if the calibration keeps their order; see
    :func:`calibrated`.
    """
    import torch

    from protgraph.bench.protein_scores import describe_test_split
    from protgraph.checkpoint.checkpoint_file import as_checkpoint
    from protgraph.data.datasets.dataset_view import held_out
    from protgraph.data.datasets.splits import cluster_proteins
    from protgraph.evaluation.bootstrap import resample_test_split
    from protgraph.evaluation.evaluation import predict_ensemble
    from protgraph.labels.loading import resolve_task
    from protgraph.labels.preparation import prepare
    from protgraph.process_memory import peak_memory, reset_peak_memory
    from protgraph.task.metrics import compute_metrics

    start = time.perf_counter()
    device = torch.device("cpu")
    reset_peak_memory(device)
    checkpoint, dataset = as_checkpoint(job.trained), job.data()
    task = resolve_task(job.task, dataset)
    _check_target(job, checkpoint, task)
    prepared = prepare(held_out(dataset, task.name), task, checkpoint.model.plan, needs_train=False)
    begin = time.perf_counter()
    predictions = predict_ensemble(checkpoint.members, prepared.splits, task)
    seconds = time.perf_counter() - begin
    predictions = {split: calibrated(rows, checkpoint) for split, rows in predictions.items()}
    monitor = next(metric for metric in task.metrics if metric.name == task.monitor)
    scores = {}
    for split, rows in predictions.items():
        if split != "val":
            names = prepared.splits[split].names
            scores[split] = resample_test_split(rows, monitor, names, cluster_proteins(dataset, task.name, names))
    test = scores.get("test")
    return replace(
        BenchRow.of(job, task),
        metrics={split: compute_metrics(task.metrics, rows, task=task.name) for split, rows in predictions.items()},
        parameters=sum(member.num_parameters for member in checkpoint.members),
        residues_per_second=sum(store.num_residues for store in prepared.splits.values()) / max(seconds, 1e-9),
        seconds=time.perf_counter() - start,
        peak_memory_mib=peak_memory(device),
        failures=prepared.failures,
        predictions=save_predictions(scores, job),
        **({} if test is None else describe_test_split(test, task)),
    )


class SampledRow(NamedTuple):
    """Row of a model that was evaluated by sampling, the number of sampled residues, and the time that it took."""

    row: BenchRow
    residues: int
    seconds: float


def evaluate_published(job: BenchJob) -> BenchRow:
    """Evaluate the published weights of a job's model on the test splits, without training."""
    import torch

    from protgraph.labels.loading import resolve_task
    from protgraph.model import pretrained
    from protgraph.process_memory import peak_memory, reset_peak_memory
    from protgraph.structure import ALPHABET

    start = time.perf_counter()
    device = torch.device("cpu")
    dataset = job.data()
    task = resolve_task(job.task, dataset)
    if task.target.level != "node" or task.target.names not in (tuple(ALPHABET), tuple(ALPHABET[:-1])):
        raise OptionError(
            f"model {job.model!r} has published weights for residue types; task {task.name!r} has another target. Use "
            "a variant without weights, which is trained on the task."
        )
    reset_peak_memory(device)
    model = pretrained(job.graph)
    row = replace(BenchRow.of(job, task), parameters=model.num_parameters)
    sampled = evaluated_by_sampling(row, dataset, model, without=("train", "val"))
    return replace(
        sampled.row,
        residues_per_second=sampled.residues / sampled.seconds,
        seconds=time.perf_counter() - start,
        peak_memory_mib=peak_memory(device),
    )


def evaluated_by_sampling(
    row: BenchRow, dataset: Dataset, model: ProteinModel, *, without: Collection[str]
) -> SampledRow:
    """Add the metrics and the confusion of sampled sequences to the row of a model with a decoder.

    Proteins that cannot be read or featurized are added to the failures of the row. Splits in ``without`` are skipped.
    """
    evaluate = registry.evaluators.get("decoder")
    start = time.perf_counter()
    result = evaluate(model, dataset, row.task, without=without, seed=row.seed)
    failures = tuple(dict.fromkeys([*row.failures, *result.failures]))
    row = replace(row, metrics=result.metrics, confusion=result.confusion, failures=failures)
    return SampledRow(row, result.residues, time.perf_counter() - start)


def _check_target(job: BenchJob, checkpoint: Checkpoint, task: Task) -> None:
    own, needed = checkpoint.model.target, task.target
    if (own.level, own.kind, own.size) != (needed.level, needed.kind, needed.size):
        raise OptionError(
            f"trained model {job.model!r} predicts {own.kind} of size {own.size} per {own.level}; task {job.task!r} is "
            f"{needed.kind} of size {needed.size} per {needed.level}. Remove it from this task in [trained]."
        )


def calibrated(rows: SplitPredictions, checkpoint: Checkpoint) -> SplitPredictions:
    """Return predictions with calibrated logits, and the threshold of the checkpoint on the same scale.

    Temperature and Platt scaling keep the order of predictions, so that metrics of ranks do not change. Isotonic
    calibration makes ties, and is not applied.
    """
    rows, calibration = rows.with_threshold(checkpoint.threshold), checkpoint.calibration
    if calibration is None or calibration.method == "isotonic":
        return rows
    threshold = None if rows.threshold is None else _scaled(rows.threshold, calibration.slope, calibration.offset)
    return replace(rows, logits=_scaled(rows.logits, calibration.slope, calibration.offset), threshold=threshold)


def _scaled(logits: Tensor, slope: list[float], offset: list[float]) -> Tensor:
    """Return ``slope * logits + offset``, per column."""
    z = logits.double()
    return (z * z.new_tensor(slope) + z.new_tensor(offset or [0.0])).to(logits.dtype)
