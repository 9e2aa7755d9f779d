"""Fine-tuning against training from scratch, by the number of labeled proteins.

``python -m benchmarks.fine_tuning DATA LABELS --model NAME --parent NAME`` trains on random subsets of the
training proteins of a label table, a fifth of which is the validation split, and prints the monitored metric on its
test proteins.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from protgraph.labels import load_dataset
from protgraph.train import FitConfig, fit

__all__ = ["learning_curve", "main"]

#: The learning rate is a fifth of the default if all loaded weights are trained.
WAYS: dict[str, dict[str, Any]] = {
    "scratch": {},
    "fine-tuned": {"start_from": True, "lr": 1e-3},
    "frozen": {"start_from": True, "freeze": ["layers"]},
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row per run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fine_tuning", description=__doc__)
    parser.add_argument("data", help="folder of structures, or graph store with the features of the model")
    parser.add_argument("labels", type=Path, help="label table with a column split: train, test")
    parser.add_argument("--task", default="site", help="label column")
    parser.add_argument("--model", required=True)
    parser.add_argument("--parent", required=True, help="name or file to start from")
    parser.add_argument("--sizes", type=int, nargs="+", default=[5, 10, 20, 40], help="labeled proteins")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--epochs", type=int, default=30)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    for row in learning_curve(**vars(options)):
        print("  ".join(f"{key} {value}" for key, value in row.items()), flush=True)


def learning_curve(
    data: str,
    labels: Path,
    *,
    task: str,
    model: str,
    parent: str,
    sizes: Sequence[int],
    seeds: Sequence[int],
    epochs: int,
) -> Iterator[Mapping[str, object]]:
    """Train each way on each subset; yield way, number of proteins, seed, test metric and best epoch."""
    table = pd.read_csv(labels, dtype=str, keep_default_na=False)
    pool = list(dict.fromkeys(table.loc[table["split"] == "train", "file"]))
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            for size in sizes:
                names = random.Random(seed).sample(pool, size)
                subset = Path(folder) / f"{size}_{seed}.csv"
                _subset_table(table, names[size // 5 :], names[: size // 5]).to_csv(subset, index=False)
                dataset = load_dataset(data, labels=subset, task=task)
                for way, changes in WAYS.items():
                    start = {"start_from": parent} if "start_from" in changes else {}
                    config = FitConfig(epochs=epochs, batch_residues=1024, seed=seed, device="cpu", **changes | start)
                    result = fit(model, dataset, task, config=config)
                    value = round(result.test[result.task.monitor], 4)
                    yield {"way": way, "proteins": size, "seed": seed, result.task.monitor: value}


def _subset_table(table: pd.DataFrame, train: Sequence[str], val: Sequence[str]) -> pd.DataFrame:
    """Return the rows of some training proteins, in their order, and of all test proteins."""
    rows_of_file = dict(tuple(table.groupby("file", sort=False)))
    parts = [rows_of_file[name].assign(split="train") for name in train]
    parts += [rows_of_file[name].assign(split="val") for name in val]
    return pd.concat([*parts, table[table["split"] == "test"]])
