"""Metrics against closed forms, brute force, scipy and torchmetrics' own classes."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
import scipy.stats
import torch
import torchmetrics
from hypothesis import given, settings
from hypothesis import strategies as st

from protgraph import registry
from protgraph.task.metrics import Metric, as_metric, best_threshold, compute_metrics
from protgraph.task.predictions import ResiduePairs, SplitPredictions


def _of(name: str, *args, **kwargs) -> float:
    return registry.metrics.get(name)(SplitPredictions(*args, **kwargs))


def _labels(n: int = 200, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    y = (torch.rand(n, 1, generator=rng) < 0.3).float()
    return (torch.randn(n, 1, generator=rng) + y).round(decimals=1), y  # rounded: ties


def _classes(n: int = 200, c: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(1)
    return torch.randn(n, c, generator=rng), torch.randint(-1, c, (n,), generator=rng)


def test_accuracy_and_recovery_are_the_correct_fraction_of_known_labels():
    logits, y = _classes()
    expected = (logits.argmax(1) == y)[y >= 0].float().mean().item()
    assert _of("accuracy", logits, y) == pytest.approx(expected)
    assert _of("recovery", logits, y) == pytest.approx(expected)


def test_macro_f1_is_the_mean_of_2pr_over_p_plus_r():
    logits, y = _classes()
    predicted, f1 = logits.argmax(1)[y >= 0], []
    for c in range(5):
        tp = ((predicted == c) & (y[y >= 0] == c)).sum()
        f1.append(2 * tp / ((predicted == c).sum() + (y[y >= 0] == c).sum()))
    assert _of("macro_f1", logits, y) == pytest.approx(torch.stack(f1).mean().item(), rel=1e-6)


def test_perplexity_of_a_uniform_guess_is_the_number_of_classes():
    assert _of("perplexity", torch.zeros(9, 20), torch.arange(9)) == pytest.approx(20)


def test_perplexity_is_the_inverse_geometric_mean_of_the_probabilities():
    logits, y = _classes()
    p = logits.double().softmax(1)[torch.arange(len(y)), y][y >= 0]
    assert _of("perplexity", logits, y) == pytest.approx(1 / scipy.stats.gmean(p.numpy()), rel=1e-6)


def test_recovery_median_is_over_chains():
    y = torch.zeros(7, dtype=torch.long)
    logits = torch.tensor([[1.0, 0], [0, 1], [1, 0], [1, 0], [0, 1], [0, 1], [0, 1]])
    chain = torch.tensor([0, 0, 1, 1, 2, 2, 2])
    assert _of("recovery_median", logits, y, chain) == pytest.approx(0.5)  # of 1/2, 1 and 0
    y[5:] = -1
    logits[4] = torch.tensor([1.0, 0])
    assert _of("recovery_median", logits, y, chain) == pytest.approx(1.0)  # of 1/2, 1 and 1


def test_average_precision_is_the_sum_of_precision_times_gained_recall():
    logits, y = _labels()
    expected, before = 0.0, 0.0
    for cut in sorted(set(logits.flatten().tolist()), reverse=True):
        predicted = logits >= cut
        recall, precision = (predicted & (y == 1)).sum() / y.sum(), y[predicted].mean()
        expected += float((recall - before) * precision)
        before = recall
    assert _of("auprc", logits, y) == pytest.approx(expected, rel=1e-5)


def test_auroc_is_the_mann_whitney_statistic():
    logits, y = _labels()
    positive, negative = logits[y == 1].numpy(), logits[y == 0].numpy()
    u = scipy.stats.mannwhitneyu(positive, negative).statistic
    assert _of("auroc", logits, y) == pytest.approx(u / len(positive) / len(negative), rel=1e-6)


def test_mcc_is_torchmetrics_and_the_correlation_of_two_binary_vectors():
    logits, y = _labels()
    cut = torch.tensor([0.45])
    other = torchmetrics.MatthewsCorrCoef(task="binary", threshold=float(cut.sigmoid()))(logits.sigmoid(), y.int())
    predicted = (logits >= cut).float().flatten().numpy()
    value = _of("mcc", logits, y, threshold=cut)
    assert value == pytest.approx(float(other), abs=1e-6)
    assert value == pytest.approx(scipy.stats.pearsonr(predicted, y.flatten().numpy()).statistic, abs=1e-6)


def test_dice_is_the_f1_of_torchmetrics_and_its_mean_is_over_proteins_with_positives():
    logits, y = _labels()
    cut, protein = torch.tensor([0.45]), torch.arange(len(y)) * 4 // len(y)
    y[protein == 2] = 0
    logits[protein == 2] = -1.0
    score = torchmetrics.F1Score(task="binary")
    called = (logits >= cut).int()
    assert _of("dice", logits, y, threshold=cut) == pytest.approx(float(score(called, y.int())), abs=1e-6)
    each = [float(score(called[protein == p], y[protein == p].int())) for p in (0, 1, 3)]
    predictions = SplitPredictions(logits, y, threshold=cut, protein=protein)
    assert registry.metrics.get("dice_mean")(predictions) == pytest.approx(np.mean(each), abs=1e-6)
    assert math.isnan(_of("dice", logits[protein == 2], y[protein == 2], threshold=cut))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=2, max_size=12))
def test_best_threshold_is_never_worse_than_any_other(pairs):
    logits = torch.tensor([[float(a)] for a, _ in pairs])
    y = torch.tensor([[float(b)] for _, b in pairs])
    best = registry.metrics.get("mcc")(
        SplitPredictions(logits, y, threshold=best_threshold(SplitPredictions(logits, y)))
    )
    for cut in np.arange(-4.5, 5):
        assert best >= registry.metrics.get("mcc")(SplitPredictions(logits, y, threshold=torch.tensor([cut]))) - 1e-9


def test_a_given_threshold_is_used_unchanged():
    # Chosen on one outcome, applied to another: it is not chosen again to fit.
    there = SplitPredictions(torch.tensor([[0.0], [1.0], [2.0], [3.0]]), torch.tensor([[0.0], [0], [1], [1]]))
    other = SplitPredictions(torch.tensor([[-3.0], [-2.0], [-1.0], [0.0]]), torch.tensor([[0.0], [0], [1], [1]]))
    cut = best_threshold(there)
    assert cut.tolist() == [1.5]
    assert registry.metrics.get("mcc")(there.with_threshold(cut)) == 1
    assert registry.metrics.get("mcc")(other.with_threshold(cut)) == 0
    assert registry.metrics.get("mcc")(other.with_threshold(best_threshold(other))) == 1


def test_ranking_metrics_of_one_class_only_are_undefined():
    outcome = SplitPredictions(torch.randn(5, 1), torch.zeros(5, 1))
    assert math.isnan(registry.metrics.get("auprc")(outcome))
    assert math.isnan(registry.metrics.get("auroc")(outcome))
    assert registry.metrics.get("mcc")(outcome) == 0


def test_several_labels_are_averaged_over_those_that_are_defined():
    logits, y = _labels()
    both = torch.cat([logits, logits], 1), torch.cat([y, torch.zeros_like(y)], 1)
    assert _of("auroc", *both) == pytest.approx(_of("auroc", logits, y))


def test_unknown_labels_do_not_change_ranking_metrics():
    logits, y = _labels()
    more = torch.cat([logits, torch.full((5, 1), 9.0)]), torch.cat([y, torch.full((5, 1), math.nan)])
    for name in ("auprc", "auroc", "mcc"):
        assert _of(name, *more) == pytest.approx(_of(name, logits, y))


def test_pearson_is_the_mean_over_chains_and_undefined_chains_are_counted():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 1)), rng.normal(size=(30, 1))
    chain = np.repeat([4, 2, 9, 7], [10, 12, 1, 7])
    x[chain == 7] = 3.25  # a constant prediction
    expected = np.mean([scipy.stats.pearsonr(x[chain == c, 0], y[chain == c, 0]).statistic for c in (4, 2)])
    outcome = SplitPredictions(torch.tensor(x).float(), torch.tensor(y).float(), torch.tensor(chain))
    assert registry.metrics.get("pearson")(outcome) == pytest.approx(expected, rel=1e-5)
    assert registry.metrics.get("pearson_undefined")(outcome) == 2


def test_pearson_is_independent_of_row_order():
    rng = torch.Generator().manual_seed(2)
    x, y = torch.randn(40, 1, generator=rng), torch.randn(40, 1, generator=rng)
    chain, order = torch.arange(40) // 10, torch.randperm(40, generator=rng)
    shuffled = _of("pearson", x[order], y[order], chain[order])
    assert shuffled == pytest.approx(_of("pearson", x, y, chain), rel=1e-12)


def test_pearson_overall_is_scipys():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=50), rng.normal(size=50)
    value = _of("pearson_overall", torch.tensor(x)[:, None], torch.tensor(y)[:, None])
    assert value == pytest.approx(scipy.stats.pearsonr(x, y).statistic, rel=1e-12)


def test_rmse_and_mae_are_over_the_known():
    logits, y = torch.tensor([[1.0], [2.0], [9.0]]), torch.tensor([[0.0], [4.0], [math.nan]])
    assert _of("rmse", logits, y) == pytest.approx(math.sqrt(2.5))
    assert _of("mae", logits, y) == pytest.approx(1.5)


def test_without_any_known_label_every_metric_is_undefined():
    classes = SplitPredictions(torch.randn(3, 4), torch.full((3,), -1), torch.zeros(3, dtype=torch.long))
    values = SplitPredictions(torch.randn(3, 1), torch.full((3, 1), math.nan), torch.zeros(3, dtype=torch.long))
    found = compute_metrics(map(registry.metrics.get, registry.metrics), classes) | compute_metrics(
        map(registry.metrics.get, registry.metrics), values
    )
    assert len(found) == len(registry.metrics)
    assert all(math.isnan(v) for v in found.values())


def test_a_metric_that_changes_its_tensors_does_not_change_the_next_one():
    def zero(o: SplitPredictions) -> float:
        o.logits.zero_()
        o.y.numpy()[:] = 0  # not counted by torch
        o.pairs.separation.zero_()
        return 0.0

    pairs = ResiduePairs(torch.zeros(2, dtype=torch.long), torch.tensor([1, 9]), torch.tensor([10]))
    o = SplitPredictions(torch.tensor([[3.0], [5.0]]), torch.tensor([[1.0], [1.0]]), pairs=pairs)
    found = compute_metrics([Metric("zero", "min", zero), registry.metrics.get("rmse")], o)
    assert found == {"zero": 0.0, "rmse": pytest.approx(10**0.5)}
    assert pairs.separation.tolist() == [1, 9] and o.y.tolist() == [[1.0], [1.0]]


def test_a_function_becomes_a_metric_of_its_name():
    @as_metric("min")
    def worst(o: SplitPredictions) -> float:
        """Largest absolute error."""
        return (o.logits - o.y).abs().max()

    assert isinstance(worst, Metric)
    assert (worst.name, worst.mode, worst.doc) == ("worst", "min", "Largest absolute error.")
    assert compute_metrics([worst], SplitPredictions(torch.zeros(2, 1), torch.tensor([[1.0], [-3.0]]))) == {
        "worst": 3.0
    }


@as_metric("min")
def own_metric(o: SplitPredictions) -> float:
    """Largest absolute error."""
    return (o.logits - o.y).abs().max()


@pytest.mark.parametrize(
    "metric", [*map(registry.metrics.get, registry.metrics), own_metric, *registry.tasks.get("contact").metrics]
)
def test_a_metric_can_be_pickled(metric):
    """With it a task does, which other processes are given."""
    again = pickle.loads(pickle.dumps(metric))
    assert (again.name, again.mode, again.doc) == (metric.name, metric.mode, metric.doc) and again.doc


@pytest.mark.parametrize("name", registry.tasks)
def test_every_task_can_be_pickled(name):
    task = registry.tasks.get(name)
    again = pickle.loads(pickle.dumps(task))
    assert again.target == task.target and [m.name for m in again.metrics] == [m.name for m in task.metrics]
