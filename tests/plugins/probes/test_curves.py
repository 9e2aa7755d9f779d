"""Label-efficiency curves: linear heads on more and more proteins, and training from scratch."""

from __future__ import annotations

import csv

import numpy as np
import torch
from protgraph_plugins.probes.curves import SCRATCH, draw_curve, linear_points, scratch_points, write_curve
from protgraph_plugins.probes.heads import ProbeRows
from protgraph_plugins.probes.tasks import TASKS, ProbeSplits, open_task

import protgraph as pg
from protgraph.data.datasets import Target
from protgraph.registry import metrics

PROTEINS, LENGTH = 40, 30


def rows(seed: int, *, axis: np.ndarray) -> ProbeRows:
    random = np.random.default_rng(seed)
    x = random.normal(size=(PROTEINS * LENGTH, len(axis)))
    y = (x @ axis + 3 * random.normal(size=len(x)) > 0).astype(np.float32)[:, None]
    protein = torch.arange(len(x)) // LENGTH
    names = tuple(f"p{i}" for i in range(PROTEINS))
    return ProbeRows(x.astype(np.float32), torch.from_numpy(y), protein, protein, names, tuple(range(PROTEINS)))


def test_more_proteins_give_better_heads_and_a_figure(tmp_path):
    splits = ProbeSplits(pg.load_dataset("pdb_core"), "site", Target("site", "node", "multilabel", 1), {})
    axis = np.random.default_rng(0).normal(size=60)
    of_splits = {split: rows(number, axis=axis) for number, split in enumerate(("train", "val", "test"))}
    auroc = metrics.get("auroc")
    points = linear_points(tmp_path / "fits", splits, auroc, {"model": of_splits}, seed=0)
    assert [point.proteins for point in points] == [1, 2, 8, 40]
    scores = [point.score for point in points]
    assert scores == sorted(scores) and scores[-1] > 0.9 > scores[0]
    assert all(point.low < point.score < point.high for point in points)
    write_curve(points, tmp_path / "curve.csv")
    with (tmp_path / "curve.csv").open(newline="") as file:
        assert [int(row["proteins"]) for row in csv.DictReader(file)] == [1, 2, 8, 40]
    draw_curve(points, "site", auroc, tmp_path / "curve.png")
    assert (tmp_path / "curve.png").stat().st_size > 5000


def test_a_protein_with_one_class_alone_has_no_score(tmp_path):
    splits = ProbeSplits(pg.load_dataset("pdb_core"), "site", Target("site", "node", "multilabel", 1), {})
    good = rows(1, axis=np.ones(4))
    y = good.y.clone()
    y[:LENGTH] = 0
    train = ProbeRows(good.vectors, y, good.protein, good.chain, good.names, good.clusters)
    points = linear_points(
        tmp_path, splits, metrics.get("auprc"), {"model": {"train": train, "val": good, "test": good}}, seed=0
    )
    assert np.isnan(points[0].score) and points[1].score > 0.5


def test_training_from_scratch_is_scored_on_the_same_test_proteins():
    splits = open_task(TASKS["secondary_structure"], {"train": 2, "val": 2, "test": 3})
    spec = pg.models.get("structure_encoder")
    names = [example.id for example in splits.examples["train"]]
    points = scratch_points(spec, splits, metrics.get("accuracy"), names, epochs=1, seed=0)
    assert [(point.model, point.proteins) for point in points] == [(SCRATCH, 1), (SCRATCH, 2)]
    assert all(0 <= point.low <= point.score <= point.high <= 1 for point in points)
