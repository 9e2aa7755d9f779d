"""Cards: results of splits whose proteins are in clusters."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import protgraph as pg
from protgraph.checkpoint import Checkpoint
from protgraph.checkpoint.trained_model import SplitResult
from protgraph.labels.loading import resolve_task
from protgraph.recipes.card import card_page, split_result
from protgraph.task.predictions import SplitPredictions


def predictions(numbers: list[int]) -> SplitPredictions:
    """Return 60 residues of each protein; proteins of one number are copies."""
    logits, y = [], []
    for number in numbers:
        rng = np.random.default_rng(number)
        z = rng.normal(-1, 2, size=(60, 1))
        logits.append(z)
        y.append(rng.random((60, 1)) < 1 / (1 + np.exp(-z)))
    protein = torch.arange(len(numbers)).repeat_interleave(60)
    z, labels = (torch.from_numpy(np.concatenate(columns)).float() for columns in (logits, y))
    return SplitPredictions(z, labels, protein=protein)


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    return pg.trained_models.get("ligand_site").checkpoint()


def result(checkpoint: Checkpoint, numbers: list[int]) -> SplitResult:
    task = resolve_task("ligand_site", pg.datasets.create("ligand_site_dsdp"))
    return split_result(task, predictions(numbers), checkpoint, numbers)


def test_with_one_vote_per_cluster_copies_give_the_scores_and_the_calibration_error_of_the_proteins(checkpoint):
    once, copies = result(checkpoint, [0, 1, 2, 3]), result(checkpoint, [0, 0, 0, 1, 2, 3])
    assert (once.clusters, once.cluster_metrics) == (None, {}) and "ece_after_clusters" not in once.calibration
    assert (copies.proteins, copies.clusters) == (6, 4)
    assert copies.cluster_metrics.keys() == once.metrics.keys()
    for name, values in copies.cluster_metrics.items():
        assert values == pytest.approx(once.metrics[name], rel=1e-5)
        assert values[0] != pytest.approx(copies.metrics[name][0], rel=1e-3)
    assert copies.calibration["ece_after_clusters"] == pytest.approx(once.calibration["ece_after"], rel=1e-6)


def test_the_page_states_clusters_and_both_averages(checkpoint):
    card = pg.trained_models.get("ligand_site").card()
    splits = {"val": result(checkpoint, [0, 1, 2, 3]), "test": result(checkpoint, [0, 0, 0, 1, 2, 3])}
    page = card_page(card.model_copy(update={"splits": splits}))
    assert "| split | proteins | clusters | labels | auprc |" in page and "| test | 6 | 4 | 360," in page
    assert "interval over clusters" in page and "one vote per cluster" in page.lower()
    plain = card_page(card.model_copy(update={"splits": {"val": splits["val"]}, "calls": [], "comparisons": []}))
    assert (
        "interval over proteins." in plain
        and "cluster" not in plain.partition("## Results")[2].partition("## Limits")[0]
    )
