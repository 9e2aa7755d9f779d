"""Losses against torch's own on the known entries, and where nothing is known."""

from __future__ import annotations

import math
from functools import partial

import pytest
import torch
from torch.nn import functional

from protgraph.task.losses import (
    binary_cross_entropy,
    cross_entropy,
    huber_error,
    known_labels,
    label_counts,
    label_prior,
    label_std,
    squared_error,
)


def test_cross_entropy_of_a_uniform_guess_is_the_log_of_the_number_of_classes():
    loss = cross_entropy(torch.zeros(5, 20), torch.tensor([0, 3, 19, -1, 7]))
    assert loss.item() == pytest.approx(math.log(20))


def test_binary_cross_entropy_is_its_formula():
    logits, y = torch.tensor([[0.3], [-1.2]], dtype=torch.float64), torch.tensor([[1.0], [0.0]], dtype=torch.float64)
    p = 1 / (1 + torch.exp(-logits))
    expected = -(3 * p[0, 0].log() + (1 - p[1, 0]).log()) / 2
    assert binary_cross_entropy(logits, y, pos_weight=3.0).item() == pytest.approx(expected.item(), rel=1e-12)


def test_pos_weight_may_differ_by_label():
    logits, y = torch.randn(7, 2), torch.randint(0, 2, (7, 2)).float()
    weight = torch.tensor([2.0, 5.0])
    expected = functional.binary_cross_entropy_with_logits(logits, y, pos_weight=weight)
    torch.testing.assert_close(binary_cross_entropy(logits, y, pos_weight=weight), expected)


@pytest.mark.parametrize(
    ("loss", "reference", "y"),
    [
        (cross_entropy, functional.cross_entropy, torch.tensor([0, 2, -1, 1, -1])),
        (
            binary_cross_entropy,
            functional.binary_cross_entropy_with_logits,
            torch.tensor([[1.0, 0, 1], [math.nan] * 3, [0, 1, 1], [math.nan] * 3, [1, 1, 0]]),
        ),
        (squared_error, functional.mse_loss, torch.tensor([[0.5, 2], [math.nan, math.nan], [0, 1], [3, 3], [1, 1]])),
        (huber_error, functional.huber_loss, torch.tensor([[0.5, 2], [math.nan, math.nan], [0, 1], [3, 3], [1, 9]])),
    ],
)
def test_unknown_entries_change_neither_loss_nor_gradient(loss, reference, y):
    logits = torch.randn(
        5, 2 if loss in (squared_error, huber_error) else 3, generator=torch.Generator().manual_seed(0)
    ).requires_grad_()
    there = known_labels(y) if y.dim() == 1 else known_labels(y).all(1)
    value = loss(logits, y)
    torch.testing.assert_close(value, reference(logits[there], y[there]))
    value.backward()
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad[~there] == 0).all()
    assert (logits.grad[there] != 0).all()


@pytest.mark.parametrize(
    ("loss", "y"),
    [
        (cross_entropy, torch.full((4,), -1)),
        (binary_cross_entropy, torch.full((4, 2), math.nan)),
        (squared_error, torch.full((4, 2), math.nan)),
        (huber_error, torch.full((4, 2), math.nan)),
    ],
)
def test_a_batch_without_labels_gives_zero_and_no_gradient(loss, y):
    logits = torch.randn(4, 2, requires_grad=True)
    value = loss(logits, y)
    value.backward()
    assert value.item() == 0
    assert (logits.grad == 0).all()


@pytest.mark.parametrize(
    ("kind", "loss", "y"),
    [
        ("classification", cross_entropy, torch.tensor([0] * 500 + [1] * 300 + [2] * 200 + [-1] * 50)),
        (
            "multilabel",
            binary_cross_entropy,
            torch.tensor([[1.0, 0.0]] * 150 + [[0.0, 1.0]] * 850 + [[math.nan, 1.0]] * 9),
        ),
        ("multilabel", partial(binary_cross_entropy, pos_weight=4.0), torch.tensor([[1.0]] * 150 + [[0.0]] * 850)),
        ("regression", squared_error, torch.tensor([[1.0, math.nan], [3.0, 5.0], [math.nan, 1.0]])),
    ],
)
def test_no_constant_has_less_loss_than_the_prior(kind, loss, y):
    """Gradient descent from elsewhere ends where the closed form begins, but for half an observation of smoothing."""
    size = 3 if kind == "classification" else y.shape[1]
    weight = loss.keywords["pos_weight"] if isinstance(loss, partial) else None
    start = label_prior(label_counts(y.split(2), kind, size), kind, pos_weight=weight)
    found = torch.zeros(size, requires_grad=True)
    optimizer = torch.optim.LBFGS([found], max_iter=200, line_search_fn="strong_wolfe")

    def step():
        optimizer.zero_grad()
        value = loss(found.expand(len(y), size), y)
        value.backward()
        return value

    optimizer.step(step)
    shift = start.mean() - found.detach().mean() if kind == "classification" else 0.0  # softmax sees differences only
    torch.testing.assert_close(start, found.detach() + shift, atol=0.02, rtol=0)


def test_vectors_have_no_prior():
    assert label_prior(label_counts([torch.zeros(4, 1, 3)], "vectors", 1), "vectors") is None


def test_label_std_is_over_known_values_and_1_for_constants():
    y = torch.tensor([[1.0, 5.0, torch.nan], [3.0, 5.0, 2.0], [torch.nan, 5.0, 1000.0]])
    found = label_std(label_counts(y.split(1), "regression", 3))
    assert found.tolist() == pytest.approx([1.0, 1.0, 499.0])


def test_squared_error_with_a_scale_is_that_of_divided_labels():
    logits = torch.tensor([[1.0, 2e-9], [3.0, 5e-9], [0.0, 0.0]])
    y = torch.tensor([[2.0, 1e-9], [math.nan, 4e-9], [1.0, math.nan]])
    scale = torch.tensor([0.5, 1e-9])
    assert squared_error(logits, y, scale=scale) == pytest.approx((2**2 + 2**2 + 1 + 1) / 4)


def test_cross_entropy_with_class_weights_is_that_of_repeated_labels():
    logits = torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    y = torch.tensor([0, 2, -1, 1, 2, 0])
    weight = torch.tensor([1.0, 3.0, 2.0])
    repeated = torch.cat([torch.full((int(weight[c]),), i) for i, c in enumerate(y.tolist()) if c >= 0])
    total = functional.cross_entropy(logits[repeated], y[repeated], reduction="sum")
    assert cross_entropy(logits, y, weight=weight) == pytest.approx(float(total) / 5)


def test_the_prior_of_weighted_classes_has_the_least_loss():
    y = torch.tensor([0] * 9000 + [1] * 900 + [2] * 100)
    weight = torch.tensor([1.0, 5.0, 20.0])
    prior = label_prior(label_counts([y], "classification", 3), "classification", class_weight=weight).double()
    logits = prior.clone().requires_grad_()
    cross_entropy(logits.expand(len(y), 3), y, weight=weight).backward()
    assert logits.grad.abs().max() < 2e-3
