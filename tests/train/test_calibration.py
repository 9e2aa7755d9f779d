"""Calibration: equal to scikit-learn and torchmetrics, never fitted on test, applied by predict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss
from torchmetrics.functional.classification import binary_calibration_error, multiclass_calibration_error

from protgraph.bench.run_predictions import RunPredictions, bin_probabilities
from protgraph.checkpoint import load_checkpoint
from protgraph.data.datasets.labels import ResidueLabels
from protgraph.data.datasets.target import Target
from protgraph.errors import OptionError
from protgraph.evaluation.calibration import calibration_scores, fit_calibration, label_events
from protgraph.inference import predict
from protgraph.task.predictions import SplitPredictions
from protgraph.train import fit

SITE = Target("site", "node", "multilabel", 1, ("site",))
VALUES = Target("quality", "node", "regression", 2, ("a", "b"))
CLASSES = Target("state", "node", "classification", 3, ("H", "E", "C"))


@pytest.fixture(scope="module")
def yes_no() -> SplitPredictions:
    """Log-odds 2 x + 1, where x are the true log-odds; every tenth label is unknown."""
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(4000, 1, generator=rng) - 1
    y = (torch.rand(4000, 1, generator=rng) < x.sigmoid()).float()
    y[::10] = torch.nan
    return SplitPredictions(2 * x + 1, y, protein=torch.arange(4000) // 100)


@pytest.fixture(scope="module")
def classes() -> SplitPredictions:
    """Logits that are three times the true ones."""
    rng = torch.Generator().manual_seed(1)
    x = torch.randn(4000, 3, generator=rng)
    y = torch.multinomial(x.softmax(1), 1, generator=rng).flatten()
    y[::10] = -1
    return SplitPredictions(3 * x, y, protein=torch.arange(4000) // 100)


def known(p: SplitPredictions) -> tuple[np.ndarray, np.ndarray]:
    mask = ~p.y.isnan()
    return p.logits[mask].double().numpy(), p.y[mask].numpy()


def test_platt_equals_logistic_regression(yes_no) -> None:
    z, y = known(yes_no)
    witness = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(z[:, None], y)
    ours = fit_calibration("platt", yes_no, SITE)
    assert ours.slope == pytest.approx(witness.coef_.ravel().tolist(), abs=1e-4)
    assert ours.offset == pytest.approx(witness.intercept_.tolist(), abs=1e-4)
    assert (ours.proteins, ours.labels) == (40, 3600)


def test_isotonic_equals_scikit_learn(yes_no) -> None:
    z, y = known(yes_no)
    witness = IsotonicRegression(out_of_bounds="clip").fit(z, y)
    points = torch.linspace(-12, 12, 401)[:, None].double()
    ours = fit_calibration("isotonic", yes_no, SITE).probabilities(points, SITE)
    np.testing.assert_allclose(ours[:, 0].numpy(), witness.predict(points[:, 0].numpy()), atol=1e-6)


def test_temperature_recovers_the_scale_of_logits(classes) -> None:
    ours = fit_calibration("temperature", classes, CLASSES)
    assert 1 / ours.slope[0] == pytest.approx(3, rel=0.1)
    p = ours.probabilities(classes.logits, CLASSES)
    assert torch.equal(p.argmax(1), classes.logits.argmax(1))
    torch.testing.assert_close(p.sum(1), torch.ones(len(p)))


def test_the_fitted_slope_has_the_largest_likelihood(classes) -> None:
    mask = classes.y >= 0
    z, y, best = (
        classes.logits[mask].double(),
        classes.y[mask],
        fit_calibration("temperature", classes, CLASSES).slope[0],
    )
    losses = [torch.nn.functional.cross_entropy(z * a, y) for a in (best * 0.99, best, best * 1.01)]
    assert losses[1] < losses[0] and losses[1] < losses[2]


def test_a_linear_calibration_is_the_least_squares_line() -> None:
    rng = torch.Generator().manual_seed(1)
    z = torch.rand(500, 2, generator=rng)
    y = 0.5 * z + 0.2 + 0.1 * torch.randn(500, 2, generator=rng)
    y[::7, 1] = torch.nan
    found = fit_calibration("linear", SplitPredictions(z, y), VALUES)
    for column in range(2):
        known = ~y[:, column].isnan()
        slope, offset = np.polyfit(z[known, column].double(), y[known, column].double(), 1)
        assert (found.slope[column], found.offset[column]) == pytest.approx((slope, offset), abs=1e-6)
    torch.testing.assert_close(found.probabilities(z, VALUES)[:, 0], z[:, 0] * found.slope[0] + found.offset[0])
    assert str(found).startswith("linear 0.5")


def test_scores_equal_torchmetrics_and_scikit_learn(yes_no, classes) -> None:
    p, mask = yes_no.logits.sigmoid(), ~yes_no.y.isnan()
    ours = calibration_scores(p, yes_no, SITE)
    assert ours.ece == pytest.approx(float(binary_calibration_error(p[mask], yes_no.y[mask].long(), 15)), abs=1e-6)
    assert ours.brier == pytest.approx(brier_score_loss(yes_no.y[mask].numpy(), p[mask].numpy()), abs=1e-7)
    p, mask = classes.logits.softmax(1), classes.y >= 0
    ours = calibration_scores(p, classes, CLASSES)
    assert ours.ece == pytest.approx(float(multiclass_calibration_error(p[mask], classes.y[mask], 3, 15)), abs=1e-6)
    one_hot = torch.nn.functional.one_hot(classes.y[mask], 3)
    assert ours.brier == pytest.approx(float((p[mask] - one_hot).square().sum(1).mean()), abs=1e-7)


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_calibration_lowers_both_errors_on_other_data(yes_no, method: str) -> None:
    half = [replace(yes_no, logits=yes_no.logits[i::2], y=yes_no.y[i::2], protein=yes_no.protein[i::2]) for i in (0, 1)]
    fitted = fit_calibration(method, half[0], SITE)
    before = calibration_scores(half[1].logits.sigmoid(), half[1], SITE)
    after = calibration_scores(fitted.probabilities(half[1].logits, SITE), half[1], SITE)
    assert after.ece < before.ece / 2 and after.brier < before.brier


def test_reliability_bins_hold_all_known_labels(yes_no) -> None:
    curve = label_events(yes_no.logits.sigmoid(), yes_no).bins().curve()
    assert sum(count for _, _, count in curve) == 3600
    mean = sum(count * frequency for _, frequency, count in curve) / 3600
    assert mean == pytest.approx(float(yes_no.y.nanmean()), abs=1e-6)


def test_cards_and_benchmarks_have_the_same_error(yes_no) -> None:
    rows = RunPredictions.of([str(i) for i in range(int(yes_no.protein.max()) + 1)], yes_no)
    ours = calibration_scores(rows.rows.logits.sigmoid(), rows.rows, SITE)
    assert float(bin_probabilities(rows).error()[0]) == pytest.approx(ours.ece, abs=1e-6)


def test_a_probability_on_an_edge_is_in_the_upper_bin_as_in_torchmetrics() -> None:
    p, y = torch.tensor([[0.25], [0.2], [0.5], [1.0]]), torch.tensor([[0.0], [1.0], [1.0], [1.0]])
    predictions = SplitPredictions(p.logit(), y)
    events = label_events(p, predictions)
    assert events.row.tolist() == [0, 1, 2, 3]
    expected = float(binary_calibration_error(p.flatten(), y.flatten().long(), 4))
    assert float(events.bins(bins=4).error()[0]) == pytest.approx(expected, abs=1e-6)
    assert [count for _, _, count in events.bins(bins=4).curve()] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("platt", CLASSES),
        ("isotonic", CLASSES),
        ("tempreture", SITE),
        ("platt", VALUES),
        ("linear", SITE),
        ("linear", CLASSES),
    ],
)
def test_a_method_that_does_not_fit_the_target_is_an_error(method: str, target: Target, yes_no) -> None:
    with pytest.raises(OptionError, match=method):
        fit_calibration(method, yes_no, target)


class OtherTestLabels:
    """Mixin: the labels of the test split are inverted."""

    def labels(self, task, example):
        labels = super().labels(task, example)
        if example.split != "test":
            return labels
        return ResidueLabels(labels.chain, labels.res_id, labels.ins_code, 1 - labels.values, name=example.id)


@pytest.mark.slow
def test_a_calibration_does_not_depend_on_test_labels(small, tiny, quick) -> None:
    class Inverted(OtherTestLabels, type(small)):
        pass

    other = Inverted.__new__(Inverted)
    other.__dict__.update(small.__dict__)
    one, two = (fit(tiny, d, "buried", config=quick, calibrate="isotonic") for d in (small, other))
    assert one.test["auroc"] != two.test["auroc"]
    assert one.calibration == two.calibration and one.calibration.split == "val"


def test_predict_applies_the_calibration_of_a_checkpoint(small, tiny, quick, structures_dir, tmp_path) -> None:
    result = fit(tiny, small, "helix", config=quick, calibrate="temperature", save=tmp_path / "m.safetensors")
    loaded, file = load_checkpoint(tmp_path / "m.safetensors"), structures_dir / "1orc.bcif"
    assert loaded.calibration == result.calibration
    plain = predict(loaded, file, device="cpu", calibrated=False)
    own = predict(loaded, file, device="cpu")
    logits = torch.tensor(np.stack([plain.column("p_no"), plain.column("p_yes")], 1)).log()
    expected = loaded.calibration.probabilities(logits, loaded.model.target)
    np.testing.assert_allclose(own.column("p_yes"), expected[:, 1].numpy(), atol=1e-5)
    assert (own.column("predicted") == plain.column("predicted")).all()
    assert not np.allclose(own.column("p_yes"), plain.column("p_yes"), atol=1e-4)
