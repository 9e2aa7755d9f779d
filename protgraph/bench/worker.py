"""Run one benchmark job, in this process or in a worker process."""

from __future__ import annotations

import json
import pkgutil
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from protgraph.bench.rows import BenchJob, BenchRow
from protgraph.bench.run_predictions import save_predictions
from protgraph.bench.trained_rows import evaluate_published, evaluate_trained, evaluated_by_sampling
from protgraph.errors import ProtgraphError
from protgraph.process_memory import release_memory

if TYPE_CHECKING:
    from protgraph.train import FitResult

__all__ = ["TRAIN", "perform", "run_job", "train_job"]

#: Reference of the function that trains and tests one job.
TRAIN = "protgraph.bench.worker:train_job"


def train_job(job: BenchJob) -> BenchRow:
    """Train, choose the best epoch on validation, and test it once; see :func:`protgraph.train.fit`.

    A model with published weights and a trained model are not trained. A model with a decoder on a task of residue
    types is evaluated by sampling sequences, with the function of the entry point ``decoder`` of
    ``protgraph.evaluators``.
    """
    from protgraph.bench.protein_scores import describe_test_split
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
