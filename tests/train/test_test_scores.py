"""Interval and size of the test split in the result of a run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from protgraph.evaluation.bootstrap import percentile_interval
from protgraph.train import FitConfig, fit
from tests.train.conftest import CHAINS


@pytest.mark.parametrize("task", ["helix", "buried", "size"])
def test_the_interval_of_the_test_split_is_in_the_summary(small, tiny, quick, task):
    result = fit(tiny, small, task, config=replace(quick, epochs=1))
    test = result.test_scores["test"]
    assert test.metric == result.task.monitor
    assert test.size.proteins == len(CHAINS["test"])
    interval = percentile_interval(test.scores)
    assert interval.low - 1e-6 <= result.test[test.metric] <= interval.high + 1e-6  # metrics are float32
    assert interval.text(4) in result.summary() and "too few" in result.summary()


@pytest.mark.slow
def test_scores_of_two_models_are_of_the_same_samples(small, tiny, quick):
    one, other = (fit(model, small, "buried", config=replace(quick, epochs=1)) for model in (tiny, "majority"))
    scores = [result.test_scores["test"] for result in (one, other)]
    assert scores[0].test_set == scores[1].test_set
    assert len(scores[0].scores) == len(scores[1].scores)
    assert not np.array_equal(scores[0].scores, scores[1].scores)


@pytest.mark.slow
def test_pairs_have_an_interval():
    result = fit("majority", "pdb_core", "contact", config=FitConfig(epochs=1, device="cpu"))
    interval = percentile_interval(result.test_scores["test"].scores)
    assert interval.low <= result.test[result.task.monitor] <= interval.high
