"""Calls of cards: thresholds from validation alone, and counts that a brute-force search reproduces."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from protgraph import trained_models
from protgraph.recipes.calls import mutation_calls
from protgraph.task.predictions import SplitPredictions


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
