"""Synthetic rows of a benchmark."""

from __future__ import annotations

import math

import pytest

from protgraph.bench.rows import BenchRow

_LAST_SCORES = {"majority": 0.40, "mlp": 0.55, "one": 0.70, "two": 0.78}


@pytest.fixture
def rows() -> list[BenchRow]:
    """Return rows of two baselines and two models on two tasks with three seeds; lower "loss_like" is better."""
    made = []
    for task, monitor, mode in (("classes", "accuracy", "max"), ("types", "loss_like", "min")):
        for seed in range(3):
            for model, last in _LAST_SCORES.items():
                made.append(_row(task, monitor, mode, model, seed, last + 0.01 * (seed - 1)))
    return made


def _row(task: str, monitor: str, mode: str, model: str, seed: int, last: float) -> BenchRow:
    epochs = 1 if model == "majority" else 6 + seed
    curve = [last * (1 - math.exp(-e)) for e in range(1, epochs + 1)]
    curve = curve if mode == "max" else [1 - v for v in curve]
    score = curve[-1]
    return BenchRow(
        key=f"{task}-{model}-{seed}",
        model=model,
        task=task,
        dataset="small",
        seed=seed,
        metrics={"val": {monitor: score}, "test": {monitor: score - 0.01, "other": 0.5}},
        monitor=monitor,
        modes={monitor: mode, "other": "max"},
        parameters=1234,
        residues_per_second=20000.0 + seed,
        seconds=10.0 + seed,
        peak_memory_mib=400.0,
        epochs=epochs,
        best_epoch=epochs,
        history=tuple({"epoch": e + 1, monitor: v} for e, v in enumerate(curve)),
    )
