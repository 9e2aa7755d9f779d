"""Binding sites learned from all rows of ``ligand_site`` against those that are not from PDBbind.

``python -m benchmarks.site_rows FOLDER`` trains ``site_mpnn.pocket`` twice, on every fifth training protein and on
those of them that are not from PDBbind, and compares both on the validation proteins that are not from PDBbind. Weights
and training states are in FOLDER: an interrupted command continues.
"""

from __future__ import annotations

import argparse
import copy
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from protgraph_datasets.ligand_site.dataset import LigandSite

from protgraph.checkpoint import as_checkpoint
from protgraph.data.datasets import GraphListDataset, resplit
from protgraph.data.store import GraphStore
from protgraph.evaluation.bootstrap import bootstrap_scores, cluster_scores, percentile_interval
from protgraph.evaluation.evaluation import predict_split
from protgraph.labels import prepare
from protgraph.labels.loading import resolve_task
from protgraph.model import ProteinModel
from protgraph.task import SplitPredictions, Task
from protgraph.task.metrics import auprc
from protgraph.train import FitConfig, fit

__all__ = ["difference_rows", "main", "split_of_sample"]

NAME, MODEL = "ligand_site", "site_mpnn.pocket"
ALL, FREE = "all rows", "without PDBbind"


def main(arguments: Sequence[str] | None = None) -> None:
    """Train both models, and print their scores and the difference."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.site_rows", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder of weights and training states")
    parser.add_argument("--every", type=int, default=5, help="use every N-th training protein (default: 5)")
    parser.add_argument("--epochs", type=int, default=10, help="passes over the proteins (default: 10)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--free", metavar="MODEL", help="trained model whose first member was trained without PDBbind")
    options = parser.parse_args(arguments)

    dataset = LigandSite()
    task = resolve_task(NAME, dataset)
    set_of = {name: row["set"] for name, row in dataset.origins.items()}
    splits = split_of_sample([(e.id, e.split) for e in dataset.examples(NAME)], set_of, every=options.every)
    plan = as_checkpoint(NAME).model.plan  # the trained model is of the same network
    prepared = prepare(resplit(dataset, NAME, splits, f"every {options.every}"), task, plan)
    stores = prepared.splits

    # the same epochs, so that the larger set also has more steps
    config = FitConfig(epochs=options.epochs, lr=1e-3, weight_decay=0.01, batch_residues=2000, seed=options.seed)
    models = {ALL: _train(stores, set_of, task, config, options.folder / "all")}
    without = {name: of_set for name, of_set in set_of.items() if of_set != "pdbbind"}
    if options.free:
        models[FREE] = as_checkpoint(options.free).members[0]
    else:
        models[FREE] = _train(stores, without, task, config, options.folder / "free")

    predictions = {label: predict_split(model, stores["val"], task) for label, model in models.items()}
    clusters = prepared.data.clusters(stores["val"].names)
    for line in difference_rows(predictions[ALL], predictions[FREE], clusters):
        print(line)


def split_of_sample(examples: Sequence[tuple[str, str]], set_of: Mapping[str, str], *, every: int) -> dict[str, str]:
    """Return the split of each protein that is used: every N-th of train, and those of val that are not from PDBbind.

    ``examples``: id and split of each protein, in the order of the dataset.
    """
    train = [name for name, split in examples if split == "train"][::every]
    val = [name for name, split in examples if split == "val" and set_of[name] != "pdbbind"]
    return dict.fromkeys(train, "train") | dict.fromkeys(val, "val")


def difference_rows(all_rows: SplitPredictions, free: SplitPredictions, clusters: Sequence[int]) -> list[str]:
    """Return lines of text: AUPRC of both on the same proteins, and the difference, each with a 95 % interval.

    ``clusters``: cluster of each protein; the intervals are over clusters, which are drawn alike for both.
    """
    of_proteins = {}
    of_clusters = {}
    for label, predictions in ((ALL, all_rows), (FREE, free)):
        samples = bootstrap_scores(predictions, auprc, clusters=clusters)
        of_proteins[label] = np.concatenate([[auprc(predictions)], samples])
        votes = cluster_scores(predictions, auprc, clusters=clusters)
        assert votes is not None, "AUPRC takes weights"
        of_clusters[label] = votes
    lines = []
    for title, scores in (("pooled", of_proteins), ("one vote per cluster", of_clusters)):
        scores["difference"] = scores[ALL] - scores[FREE]
        for label, values in scores.items():
            interval = percentile_interval(values[1:])
            lines.append(f"{title}: {label}: AUPRC {values[0]:.3f} [{interval.low:.3f}, {interval.high:.3f}]")
    return lines


def _train(
    stores: Mapping[str, GraphStore], used: Mapping[str, str], task: Task, config: FitConfig, folder: Path
) -> ProteinModel:
    """Train on the graphs of the proteins in ``used``, or continue an interrupted training."""
    graphs = []
    for split in ("train", "val"):
        for stored in stores[split]:
            if stored.name in used:
                graph = copy.copy(stored)
                graph.split = split
                graphs.append(graph)
    data = GraphListDataset(graphs, task=task.name, target=task.target)
    result = fit(
        MODEL,
        data,
        task,
        config=config,
        run_dir=folder,
        resume=True,
        save=folder.with_suffix(".safetensors"),
        on_epoch=lambda row: print(folder.name, dict(row), flush=True),
    )
    return result.model


if __name__ == "__main__":
    main()
