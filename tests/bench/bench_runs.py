"""Finished benchmark runs with synthetic predictions, for tests of comparisons and of the HTML report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from protgraph import registry
from protgraph.bench.rows import BenchRow, append_row
from protgraph.bench.run_comparison import RUN_FILE
from protgraph.bench.run_predictions import RunPredictions
from protgraph.task.predictions import SplitPredictions

MODES = {"auprc": "max", "auroc": "max", "mcc": "max"}


def write_run(
    folder: Path,
    models: Mapping[str, float],
    sizes: Mapping[str, int],
    *,
    seeds: Sequence[int] = (0, 1),
    version: str = "1",
    flipped: int = 0,
    task: str = "ligand_binding",
) -> list[BenchRow]:
    """Write rows and predictions; labels depend on the proteins only.

    Parameters
    ----------
    models : mapping of str to float
        Model → signal added to the logits of positives.
    sizes : mapping of str to int
        Protein → residues.
    flipped : int
        Number of labels to invert.
    """
    labels = np.random.default_rng(7)
    protein = np.repeat(np.arange(len(sizes)), list(sizes.values()))
    y = (labels.random(len(protein)) < 0.2).astype(np.float32)
    y[:flipped] = 1 - y[:flipped]
    rows = []
    for number, (model, signal) in enumerate(models.items()):
        for seed in seeds:
            noise = np.random.default_rng([number, seed]).normal(size=len(y))
            logits = torch.tensor(noise + signal * y - 1.5, dtype=torch.float32)[:, None]
            index = torch.tensor(protein)
            one = SplitPredictions(logits, torch.tensor(y)[:, None], index, torch.tensor([0.0]), protein=index)
            name = f"predictions/{model}-{task}-{seed}_test.npz"
            RunPredictions.of(list(sizes), one).save(folder / name)
            metrics = {metric: float(registry.metrics.get(metric)(one)) for metric in MODES}
            history = tuple({"epoch": e, "auprc": metrics["auprc"] * e / 4} for e in range(1, 5))
            rows.append(
                BenchRow(
                    f"{model}-{task}-{seed}",
                    model,
                    task,
                    "pdb_core",
                    seed,
                    metrics={"val": metrics, "test": metrics},
                    monitor="auprc",
                    modes=MODES,
                    parameters=1000 * (number + 1),
                    epochs=4,
                    best_epoch=4,
                    seconds=2.0,
                    history=history,
                    predictions={"test": name},
                    dataset_version=version,
                )
            )
            append_row(folder / "rows.jsonl", rows[-1])
    (folder / RUN_FILE).write_text(json.dumps({"spec": {}, "rows": [row.key for row in rows]}))
    return rows
