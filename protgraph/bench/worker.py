"""One run of a benchmark, and the process that does such runs one after the other.

The process reads jobs and writes rows, one JSON object a line. It is a program of its own, not a copy of the
caller's (as :mod:`multiprocessing` makes), so a benchmark may start from any script, notebook or test; and it
imports torch once for all its jobs.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import pkgutil
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TextIO

from protgraph.bench.rows import BenchJob, BenchRow
from protgraph.bench.sequence_design import evaluate_published, with_drawn
from protgraph.errors import ProtgraphError

if TYPE_CHECKING:
    from protgraph.train import FitResult

__all__ = ["TRAIN", "main", "perform", "serve", "train_job"]

#: What trains and tests one job, by reference.
TRAIN = "protgraph.bench.worker:train_job"


def train_job(job: BenchJob) -> BenchRow:
    """Train, choose the best epoch on validation, and test that one once; see :func:`protgraph.train.fit`.

    A model with published weights is not trained. One that ends in a decoder and is asked for residue types draws them
    in the end: its figures are those of :func:`protgraph.design.evaluate`.
    """
    from protgraph.train import FitConfig, fit

    if job.graph.get("weights"):
        return evaluate_published(job)
    result = fit(job.graph, job.data(), job.task, config=FitConfig(**job.config, seed=job.seed))
    row = replace(
        BenchRow.of(job),
        metrics=result.metrics,
        monitor=result.task.monitor,
        modes={metric.name: metric.mode for metric in result.task.metrics},
        parameters=result.parameters,
        residues_per_second=result.residues_per_second,
        seconds=result.seconds,
        peak_memory_mib=result.peak_memory,
        epochs=result.epochs,
        best_epoch=result.best_epoch,
        history=result.history,
        confusion=_of_types(result),
        left_out=[f"{failure.id}: {failure.reason}" for failure in result.failures],
    )
    if result.model.decoder is not None and result.task.decoder_inputs is not None:
        row, _, seconds = with_drawn(row, job.data(), result.model, without=("train",))
        row = replace(row, seconds=row.seconds + seconds)
    return row


def _of_types(result: FitResult) -> dict[str, list[list[int]]]:
    """What residue types are taken for, where the task asks for them."""
    from protgraph.structure.residues.alphabet import ALPHABET, UNKNOWN

    asked = result.task.target.names == tuple(ALPHABET[:UNKNOWN])
    return {split: counts.tolist() for split, counts in result.confusion.items()} if asked else {}


def perform(job: BenchJob, train: Callable[[BenchJob], BenchRow]) -> BenchRow:
    """Do one job, and turn any failure into a row that says so."""
    start = time.perf_counter()
    try:
        return train(job)
    except ProtgraphError as e:
        error = f"{type(e).__name__}: {e}"
    except Exception as e:  # noqa: BLE001 -- a plugin's code may raise anything; the others go on
        traceback.print_exc()
        place = traceback.extract_tb(e.__traceback__)[-1]
        error = f"{type(e).__name__}: {e} ({place.filename}:{place.lineno})"
    return BenchRow.failed(job, error, seconds=time.perf_counter() - start)


def _give_memory_back() -> None:
    """Return what earlier jobs freed to the system, so that it does not count for the next one."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # not glibc
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def serve(train: Callable[[BenchJob], BenchRow], jobs: TextIO, rows: TextIO) -> None:
    """Answer each job, one JSON object a line, with its row, until the input ends."""
    for line in jobs:
        row = perform(BenchJob.from_dict(json.loads(line)), train)
        rows.write(json.dumps(row.to_dict(), allow_nan=False) + "\n")
        rows.flush()
        _give_memory_back()


def main(train: str) -> None:
    """The worker program; ``train`` is ``"module:function"``."""
    # Whatever a library prints goes to the log; only rows go back to the caller.
    rows = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    serve(pkgutil.resolve_name(train), sys.stdin, rows)
