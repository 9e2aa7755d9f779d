"""Run a benchmark: models × tasks × seeds to rows, resuming a run that was stopped; train or test one model."""

from __future__ import annotations

import json
import os
import pkgutil
import time
import traceback
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from protgraph import registry
from protgraph.argument_types import check_arguments
from protgraph.bench.job_plan import SESSION, plan_jobs
from protgraph.bench.rows import BenchJob, BenchRow, append_row, finished_rows
from protgraph.bench.run_predictions import describe_test_split, save_predictions
from protgraph.bench.spec import BenchSpec
from protgraph.errors import OptionError, ProtgraphError
from protgraph.process_memory import release_memory
from protgraph.worker_pool import WorkerPool
from protgraph.worker_process import WorkerDied

if TYPE_CHECKING:
    from torch import Tensor

    from protgraph.checkpoint.checkpoint_file import Checkpoint
    from protgraph.data.datasets.dataset import Dataset
    from protgraph.model import ProteinModel
    from protgraph.task.predictions import SplitPredictions
    from protgraph.task.task import Task
    from protgraph.train import FitResult

__all__ = [
    "BenchCallback",
    "SampledRow",
    "TRAIN",
    "calibrated",
    "evaluate_published",
    "evaluate_trained",
    "evaluated_by_sampling",
    "perform",
    "run_bench",
    "run_in_workers",
    "run_job",
    "train_job",
]

#: Reference of the function that trains and tests one job.
TRAIN = "protgraph.bench.run:train_job"

#: glibc keeps freed memory for the next tensor instead of returning it to the system, which would clear it again.
_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 32)}


class BenchCallback(Protocol):
    """Callbacks of a benchmark run, e.g. :class:`protgraph.bench.progress.ProgressBar`."""

    def start(self, jobs: Sequence[BenchJob], finished: Sequence[BenchRow], workers: int) -> None:
        """Run before the first job: ``jobs`` to do with ``workers`` processes, ``finished`` rows of an earlier run."""

    def add(self, row: BenchRow) -> None:
        """Run after each job."""

    def stop(self) -> None:
        """Run at the end, also after an interruption."""


@check_arguments("spec")
def run_bench(
    spec: BenchSpec, *, overwrite: bool = False, callback: BenchCallback | None = None, train: str = TRAIN
) -> list[BenchRow]:
    """Run the jobs of a spec that have no finished row yet; return all rows in the order of the spec.

    Each row is written to disk (``<folder>/rows.jsonl``) as soon as it is finished, so a run can be stopped at any
    time. Finished rows are recognized by everything that determines their numbers: the model spec, the code of its
    components, the dataset's version, task, seed and training options. Failed rows run again, and so do rows whose
    files of predictions are missing.

    Parameters
    ----------
    overwrite : bool
        Run all jobs again.
    callback : BenchCallback, optional
        Called before the first job, with every row, and at the end.
    train : str
        ``"module:function"``, a function from :class:`BenchJob` to :class:`BenchRow` for the worker processes.

    Returns
    -------
    list of BenchRow
        One per job; a failed one has ``error``.

    Notes
    -----
    Components that are registered in this process only (in a script or notebook) do not exist in worker processes; a
    spec with such a component runs in this process, one job after the other.
    """
    path, log = spec.folder / "rows.jsonl", spec.folder / "workers.log"
    jobs, broken = plan_jobs(spec)
    finished = {} if overwrite else finished_rows(path)
    remaining: list[BenchJob] = []
    rows: dict[str, BenchRow] = {}
    for job in jobs:
        if job.key in finished:
            rows[job.key] = finished[job.key]
        elif job.key not in broken:
            remaining.append(job)
    rows |= broken
    queue = _short_jobs_last(remaining)
    if _is_of_this_process(remaining):
        workers, results = 1, _run_here(queue, train)
    else:
        workers = _count_workers(spec, len(remaining))
        results = run_in_workers(queue, train, workers=workers, log=log)
    if callback:
        callback.start(remaining, list(rows.values()), workers)
    try:
        with closing(results):
            for row in results:
                append_row(path, row)
                rows[row.key] = row
                if callback:
                    callback.add(row)
    finally:
        if callback:
            callback.stop()
    return [rows[job.key] for job in jobs]


def _is_of_this_process(jobs: Sequence[BenchJob]) -> bool:
    """Return True if a job has a component that is registered in this process only."""
    sources = [source for job in jobs for source in job.sources.values()]
    return any(source.startswith(SESSION) for source in sources)


def _count_workers(spec: BenchSpec, jobs: int) -> int:
    """Return the number of processes for a number of jobs."""
    most = spec.jobs or os.cpu_count() or 1
    return min(most, max(jobs, 1))


def _short_jobs_last(jobs: Sequence[BenchJob]) -> list[BenchJob]:
    """Order jobs for the workers: the first seed as in the spec, then the others from the last model to the first.

    Specs list baselines and small models first. Reversed, they fill the time in which the last large model runs.
    """
    first = [job for job in jobs if job.seed == jobs[0].seed]
    return first + [job for job in reversed(jobs) if job.seed != jobs[0].seed]


def _run_here(jobs: Sequence[BenchJob], train: str) -> Generator[BenchRow]:
    """Run jobs in this process on one thread, as a worker does, so that numbers and timings are comparable."""
    import torch

    function, before = pkgutil.resolve_name(train), torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for job in jobs:
            yield perform(job, function)
    finally:
        torch.set_num_threads(before)


def run_in_workers(jobs: Sequence[BenchJob], train: str, *, workers: int, log: Path) -> Generator[BenchRow]:
    """Yield the rows of jobs from worker processes as they finish; a job whose process dies gives a failed row."""
    workers = min(workers, max(len(jobs), 1))
    pool = WorkerPool(partial(run_job, train=train), workers=workers, log=log, retries=0, environment=_MEMORY)
    with closing(pool.run(jobs)) as results:
        for job, row in results:
            if isinstance(row, WorkerDied):
                yield BenchRow.failed(job, f"the worker process {row.reason}; see {log}")
            else:  # as read from the file of rows later
                yield BenchRow.from_dict(json.loads(row))


# --- one job, in this process or in a worker process -----------------------------------------------------------------


def train_job(job: BenchJob) -> BenchRow:
    """Train, choose the best epoch on validation, and test it once; see :func:`protgraph.train.fit`.

    A model with published weights and a trained model are not trained. A model with a decoder on a task of residue
    types is evaluated by sampling sequences, with the function of the entry point ``decoder`` of
    ``protgraph.evaluators``.
    """
    from protgraph.train import FitConfig, fit

    if job.trained:
        return evaluate_trained(job)
    if job.graph.get("weights"):
        return evaluate_published(job)
    result = fit(job.graph, job.data(), job.task, config=FitConfig(**job.config, seed=job.seed))
    row = replace(
        BenchRow.of(job, result.task),
        metrics=result.metrics,
        parameters=result.parameters,
        residues_per_second=result.residues_per_second,
        seconds=result.seconds,
        peak_memory_mib=result.peak_memory,
        epochs=result.epochs,
        best_epoch=result.best_epoch,
        history=tuple(result.history),
        confusion=_type_confusion(result),
        failures=result.failures,
        predictions=save_predictions(result.test_scores, job),
        **(describe_test_split(result.test_scores["test"], result.task) if "test" in result.test_scores else {}),
    )
    if result.model.decoder is not None and result.task.decoder_inputs is not None:
        row = replace(row, protein_scores=(), predictions={})  # of the logits, not of sampled sequences
        sampled = evaluated_by_sampling(row, job.data(), result.model, without=("train",))
        row = replace(sampled.row, seconds=row.seconds + sampled.seconds)
    return row


def _type_confusion(result: FitResult) -> dict[str, list[list[int]]]:
    """Return the confusion counts of each split if the classes are residue types, else nothing."""
    from protgraph.structure.residues.alphabet import ALPHABET, UNKNOWN

    is_residue_type = result.task.target.names == tuple(ALPHABET[:UNKNOWN])
    return {split: counts.tolist() for split, counts in result.confusion.items()} if is_residue_type else {}


def perform(job: BenchJob, train: Callable[[BenchJob], BenchRow]) -> BenchRow:
    """Run one job; any exception becomes a failed row."""
    start = time.perf_counter()
    try:
        return train(job)
    except ProtgraphError as e:
        error = f"{type(e).__name__}: {e}"
    except Exception as e:  # noqa: BLE001 -- a plugin's code may raise anything; the other jobs continue
        traceback.print_exc()
        place = traceback.extract_tb(e.__traceback__)[-1]
        error = f"{type(e).__name__}: {e} ({place.filename}:{place.lineno})"
    return BenchRow.failed(job, error, seconds=time.perf_counter() - start)


def run_job(job: BenchJob, train: str) -> str:
    """Run one job in a worker process and return its row as JSON; ``train`` is ``"module:function"``."""
    row = perform(job, lambda j: pkgutil.resolve_name(train)(j))
    release_memory()  # so that it does not count for the next job
    return json.dumps(row.to_dict(), allow_nan=False)


# --- models that were trained elsewhere: checkpoints and published weights -------------------------------------------


def evaluate_trained(job: BenchJob) -> BenchRow:
    """Evaluate a trained model on the validation split and on every tested split, with its own threshold.

    Predictions are of the mean logits of its members, calibrated if the calibration keeps their order; see
    :func:`calibrated`.
    """
    import torch

    from protgraph.checkpoint.checkpoint_file import as_checkpoint
    from protgraph.data.datasets.dataset import held_out
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
            scores[split] = resample_test_split(rows, monitor, names, prepared.data.clusters(names))
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
    z = logits.double()
    return (z * z.new_tensor(slope) + z.new_tensor(offset or [0.0])).to(logits.dtype)
