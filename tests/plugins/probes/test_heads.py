"""Heads on vectors: closed forms, random labels, choice on validation, undefined cases."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from protgraph_plugins.probes.heads import (
    HEADS,
    ProbeRows,
    constant_predictions,
    fit_head,
    fit_linear,
    fitted_head,
    predict_with,
)

from protgraph.data.datasets import Target
from protgraph.errors import DatasetError
from protgraph.registry import metrics

CLASSES = Target("letters", "node", "classification", 3)
LABEL = Target("site", "node", "multilabel", 1)
VALUE = Target("value", "node", "regression", 1)


def as_rows(vectors: np.ndarray, y: np.ndarray, *, per_protein: int = 50) -> ProbeRows:
    protein = torch.arange(len(y)) // per_protein
    count = int(protein.max()) + 1
    return ProbeRows(
        vectors.astype(np.float32),
        torch.from_numpy(y),
        protein,
        protein,
        tuple(f"p{i}" for i in range(count)),
        tuple(range(count)),
    )


def test_logistic_regression_on_groups_gives_the_frequencies_of_the_groups():
    group = np.repeat([0, 1], 100)
    positives = np.concatenate([np.arange(100) < 20, np.arange(100) < 70]).astype(float)[:, None]
    (weights,) = fit_linear(group[:, None] - 0.5, positives, LABEL, [0.0])
    p = 1 / (1 + np.exp(-predict_with(weights, np.array([[-0.5], [0.5]]))[:, 0]))
    np.testing.assert_allclose(p, [0.2, 0.7], atol=1e-4)


def test_softmax_regression_on_groups_gives_the_frequencies_of_the_classes():
    group, number = np.repeat([0, 1], 100), np.tile(np.arange(100), 2)
    classes = np.where(
        group == 0, (number >= 50).astype(int) + (number >= 80), (number >= 10).astype(int) + (number >= 20)
    )
    (weights,) = fit_linear(group[:, None] - 0.5, np.eye(3)[classes], CLASSES, [0.0])
    logits = predict_with(weights, np.array([[-0.5], [0.5]]))
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    np.testing.assert_allclose(p, [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], atol=1e-4)


def test_ridge_regression_is_the_least_squares_of_the_augmented_rows():
    random = np.random.default_rng(0)
    x, noise = random.normal(size=(80, 5)), random.normal(size=(80, 1))
    y = x @ random.normal(size=(5, 1)) + 3 + noise
    penalty = 0.3
    (weights,) = fit_linear(x, y, VALUE, [penalty])
    # ‖y - Xw - b‖²/R + λ‖w‖² as one least-squares problem
    above = np.concatenate([x, np.ones((80, 1))], 1) / np.sqrt(80)
    below = np.concatenate([np.sqrt(penalty) * np.eye(5), np.zeros((5, 1))], 1)
    expected = np.linalg.lstsq(np.concatenate([above, below]), np.concatenate([y / np.sqrt(80), np.zeros((5, 1))]))[0]
    np.testing.assert_allclose(weights, expected, atol=1e-10)


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("target", [CLASSES, LABEL, VALUE], ids=lambda target: target.kind)
def test_labels_that_are_a_function_of_the_vectors_are_predicted(head, target):
    random = np.random.default_rng(1)
    axis = random.normal(size=(6, 3))

    def rows(count: int) -> ProbeRows:
        x = random.normal(size=(count, 6)) * 4 + 2
        values = x @ axis
        if target is CLASSES:
            return as_rows(x, values.argmax(1))
        y = values[:, :1] if target is VALUE else (values[:, :1] > values[:, :1].mean())
        return as_rows(x, y.astype(np.float32))

    metric = metrics.get(
        {"classification": "accuracy", "multilabel": "auroc", "regression": "pearson_overall"}[target.kind]
    )
    train, val, test = rows(1500), rows(400), rows(400)
    predictions = fit_head(head, target, metric, train, val, test)
    assert metric(predictions) > 0.94
    if target is VALUE:
        assert metrics.get("rmse")(predictions) < 0.4 * float(test.y.std())
    again = fit_head(head, target, metric, train, val, test)
    assert torch.equal(predictions.logits, again.logits)


@pytest.mark.parametrize("head", HEADS)
def test_random_labels_are_predicted_no_better_than_by_chance(head):
    random = np.random.default_rng(2)

    def rows(count: int) -> ProbeRows:
        return as_rows(random.normal(size=(count, 40)), (random.random((count, 1)) < 0.2).astype(np.float32))

    auroc = metrics.get("auroc")
    assert abs(auroc(fit_head(head, LABEL, auroc, rows(800), rows(400), rows(4000))) - 0.5) < 0.05


def test_a_constant_prediction_has_the_prevalence_as_average_precision():
    rows = as_rows(np.zeros((100, 2)), (np.arange(100) < 30).astype(np.float32)[:, None])
    floor = constant_predictions(LABEL, rows, rows)
    assert metrics.get("auprc")(floor) == pytest.approx(0.3)


def test_a_fitted_head_is_read_from_its_file(tmp_path):
    random = np.random.default_rng(3)
    rows = as_rows(random.normal(size=(60, 4)), random.integers(0, 3, 60))
    accuracy = metrics.get("accuracy")
    first = fitted_head(tmp_path, "linear", CLASSES, accuracy, rows, rows, rows)
    (file,) = tmp_path.iterdir()
    np.save(file, first.logits.numpy() + 1)
    assert torch.equal(fitted_head(tmp_path, "linear", CLASSES, accuracy, rows, rows, rows).logits, first.logits + 1)
    fitted_head(tmp_path, "mlp", CLASSES, accuracy, rows, rows, rows)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(("train_label", "val_label"), [(0.0, None), (None, 0.0)])
def test_labels_that_cannot_be_learned_or_scored_are_a_typed_error(train_label, val_label):
    random = np.random.default_rng(4)

    def rows(label: float | None) -> ProbeRows:
        y = (
            (random.random((100, 1)) < 0.5).astype(np.float32)
            if label is None
            else np.full((100, 1), label, np.float32)
        )
        return as_rows(random.normal(size=(100, 3)), y)

    auprc = metrics.get("auprc")
    with pytest.raises(DatasetError, match="--limit"):
        fit_head("linear", LABEL, auprc, rows(train_label), rows(val_label), rows(None))
