"""Cards: results of splits whose proteins are in clusters, and calls with their thresholds."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from protgraph_plugins.recipes.card import card_page, mutation_calls, split_result

import protgraph as pg
from protgraph import trained_models
from protgraph.checkpoint import Checkpoint, SplitResult
from protgraph.labels.loading import resolve_task
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


# --- calls -----------------------------------------------------------------------------------------------------------


def split_of(rng: np.random.Generator, size: int) -> SplitPredictions:
    """Return predictions that agree with measurements in part."""
    measured = rng.normal(0.8, 1.2, size)
    predicted = measured + rng.normal(0, 0.7, size)
    return SplitPredictions(torch.tensor(predicted[:, None]).float(), torch.tensor(measured[:, None]).float())


def test_mutation_calls_are_those_of_a_search_over_all_thresholds_of_validation() -> None:
    rng = np.random.default_rng(1)
    val, test = split_of(rng, 300), split_of(rng, 200)
    rules = {rule.name: rule for rule in mutation_calls({"val": val, "test": test})}
    assert list(rules) == ["destabilizing", "neutral", "stabilizing"]
    p, y = val.logits[:, 0].numpy(), val.y[:, 0].numpy()
    correlation = [np.corrcoef(p >= at, y >= 1)[0, 1] for at in np.sort(p)[1:]]
    high = np.sort(p)[1:][int(np.argmax(correlation))]  # the smallest called prediction
    assert (p >= rules["destabilizing"].at_least).sum() == (p >= high).sum()
    halves = [k for k in range(1, len(p)) if np.mean(np.sort(y[np.argsort(p)][:k]) <= 0) >= 0.5]
    assert rules["stabilizing"].splits["val"].called == max(halves)
    assert rules["stabilizing"].splits["val"].precision >= 0.5
    assert sum(rule.splits["test"].called for rule in rules.values()) == 200  # each variant has one call
    other = mutation_calls({"val": val, "test": split_of(rng, 50)})
    assert [rule.at_least for rule in other] == [rule.at_least for rule in rules.values()]


def test_nothing_is_called_stabilizing_without_support() -> None:
    predicted = torch.linspace(-1, 3, 40)[:, None]
    rules = mutation_calls({"val": SplitPredictions(predicted, torch.where(predicted > 1, 2.0, 0.5))})
    assert [rule.name for rule in rules] == ["destabilizing"]


def test_a_rule_applies_to_its_range_and_states_it() -> None:
    from protgraph_plugins.trained.registered import DDG

    rules = {rule.name: rule for rule in DDG.card().calls}
    for value in (-3.0, 0.0, rules["neutral"].below, 0.5, 4.0):
        assert sum(rule.applies(value) for rule in rules.values()) == 1
    assert not any(rule.applies(float("nan")) for rule in rules.values())
    assert rules["destabilizing"].applies(rules["neutral"].below) and "at least" in rules["destabilizing"].sentence
    assert trained_models.get("secondary_structure").card().calls == []
    assert rules["destabilizing"].splits["val"].precision == pytest.approx(156 / 207)
