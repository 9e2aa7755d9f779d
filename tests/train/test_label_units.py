"""Labels in any unit, and several columns of different size, learn equally."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from protgraph.checkpoint import load_checkpoint
from protgraph.data.datasets.target import Target
from protgraph.evaluation.bootstrap import percentile_interval
from protgraph.task import default_task
from protgraph.train import FitConfig, fit


def task_of(columns, level="node"):
    """Return a task of these functions of the crowding, one value each; of its mean for the level "graph"."""

    def derive(residues):
        distance = np.linalg.norm(residues.pos[:, None] - residues.pos, axis=-1)
        crowding = (distance < 10).sum(1) / 10
        crowding = crowding.mean(keepdims=True) if level == "graph" else crowding
        return np.stack([column(crowding) for column in columns], axis=1).astype(np.float32)

    names = tuple(f"c{i}" for i in range(len(columns)))
    target = Target("crowding", level, "regression", len(columns), names)
    return replace(default_task(target), name="inverse_folding", derive=derive)  # a task without labels of its own


@pytest.fixture
def config():
    return FitConfig(epochs=8, lr=0.02, batch_residues=300, device="cpu", patience=None)


def train(tiny, small, config, *columns, level="node"):
    return fit(tiny, small, task_of(columns, level), config=config)


def losses(result):
    return np.array([[row["train_loss"], row["val_loss"]] for row in result.history])


def plain(x):
    return x


UNITS = {
    "1e-6": lambda x: x * 1e-6,
    "1e6 and offset": lambda x: x * 1e6 + 2.5e7,
    "mol/L": lambda x: x * 1e-9,
    "1e-30": lambda x: x * 1e-30,
    "1e15": lambda x: x * 1e15,
    "C to K": lambda x: x * 10 + 273.15,
}


USUAL = {}  # level → result of labels without a unit, trained once


@pytest.mark.slow
@pytest.mark.parametrize(
    ("unit", "level"), [*((unit, "node") for unit in UNITS), ("mol/L", "graph"), ("1e6 and offset", "graph")]
)
def test_the_losses_of_every_epoch_do_not_depend_on_the_unit(small, tiny, config, unit, level):
    if level not in USUAL:
        USUAL[level] = train(tiny, small, config, plain, level=level)
    usual, other = USUAL[level], train(tiny, small, config, UNITS[unit], level=level)
    np.testing.assert_allclose(losses(other), losses(usual), rtol=2e-3)
    assert losses(usual)[-1, 0] < 0.9 * losses(usual)[0, 0]
    factor = UNITS[unit](np.float64(1.0)) - UNITS[unit](np.float64(0.0))
    assert other.test["rmse"] == pytest.approx(factor * usual.test["rmse"], rel=2e-3)
    assert other.test["pearson_overall"] == pytest.approx(usual.test["pearson_overall"], rel=2e-3)
    intervals = [percentile_interval(result.test_scores["test"].scores) for result in (usual, other)]
    assert intervals[1].low == pytest.approx(factor * intervals[0].low, rel=2e-3)


@pytest.mark.slow
def test_the_initial_loss_is_that_of_the_mean_label(small, tiny, config):
    result = train(tiny, small, replace(config, lr=1e-9, epochs=1), UNITS["1e6 and offset"])
    assert losses(result)[0, 0] == pytest.approx(1, abs=1e-3)


@pytest.mark.slow
def test_two_columns_of_ratio_1e8_learn_as_two_of_equal_size(small, tiny, config):
    def large(x):
        return 1e4 * x

    def little(x):
        return 1e-4 * x

    equal, unequal = train(tiny, small, config, plain, plain), train(tiny, small, config, large, little)
    np.testing.assert_allclose(losses(unequal), losses(equal), rtol=2e-3)
    for name, factor in (("c0", 1e4), ("c1", 1e-4)):
        assert unequal.test[f"rmse/{name}"] == pytest.approx(factor * equal.test[f"rmse/{name}"], rel=2e-3)
        assert unequal.test[f"pearson_overall/{name}"] > 0.2
    assert unequal.best_epoch == equal.best_epoch
    assert unequal.test["nrmse"] == pytest.approx(equal.test["nrmse"], rel=2e-3)
    root = np.sqrt(unequal.history[-1]["val_loss"])  # of the mean square; nrmse is the mean of the roots
    assert 0.9 * root < unequal.history[-1]["nrmse"] <= root * (1 + 1e-6)


@pytest.mark.slow
def test_a_constant_column_is_learned_and_does_not_disturb_the_other(small, tiny, config):
    def constant(x):
        return 0 * x + 0.1

    result = train(tiny, small, config, constant, UNITS["1e-6"])
    assert result.test["rmse/c0"] < 1e-6
    assert result.test["pearson_overall/c1"] > 0.2
    assert np.isnan(result.test["pearson_overall/c0"])
    assert torch.equal(result.model.head.scale[:1], torch.ones(1))


@pytest.mark.slow
def test_a_checkpoint_has_scale_and_shift(small, tiny, config, tmp_path):
    result = train(tiny, small, replace(config, epochs=1), UNITS["mol/L"])
    loaded = load_checkpoint(result.save(tmp_path / "kd.safetensors")).model.head
    assert torch.equal(loaded.scale, result.model.head.scale)
    assert torch.equal(loaded.shift, result.model.head.shift)
    assert 0 < float(loaded.scale) < 1e-8
