"""Bootstrap over proteins: weighted metrics equal those of resampled rows, intervals equal SciPy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.stats import bootstrap

from protgraph import registry
from protgraph.evaluation import weighted_metrics
from protgraph.evaluation.bootstrap import (
    SplitScores,
    SplitSize,
    bootstrap_scores,
    cluster_scores,
    count_split,
    percentile_interval,
)
from protgraph.task.metrics import Metric
from protgraph.task.model_quality import pearson_of_means, rmse_of_means, spearman_of_means
from protgraph.task.predictions import ResiduePairs, SplitPredictions


def example(kind: str, proteins: int = 8, seed: int = 0) -> SplitPredictions:
    """Return random predictions of proteins of 3 to 9 residues with some unknown labels and equal scores.

    Every second protein has two chains.
    """
    rng = np.random.default_rng(seed)
    protein = torch.from_numpy(np.repeat(np.arange(proteins), rng.integers(3, 10, proteins)))
    n = len(protein)
    chain = 2 * protein + (protein % 2) * (torch.arange(n) % 2)
    random = torch.Generator().manual_seed(seed)
    if kind == "pairs":
        return of_pairs(proteins, rng, random)
    if kind == "classes":
        logits = torch.randn(n, 3, generator=random)
        return SplitPredictions(logits, torch.from_numpy(rng.integers(-1, 3, n)), chain, protein=protein)
    if kind == "vectors":
        logits, y = (torch.randn(n, 2, 3, generator=random) for _ in range(2))
        y[torch.from_numpy(rng.random(n) < 0.2)] = torch.nan
        return SplitPredictions(logits, y, chain, protein=protein)
    width = 2 if kind == "binary" else 1
    logits = torch.from_numpy(rng.integers(-3, 4, (n, width)) / 2).float()
    y = torch.from_numpy(rng.integers(0, 2, (n, width)) if kind == "binary" else rng.normal(size=(n, width))).float()
    y[rng.random((n, width)) < 0.2] = torch.nan
    return SplitPredictions(logits, y, chain, protein=protein)


def of_pairs(proteins: int, rng: np.random.Generator, random: torch.Generator) -> SplitPredictions:
    """Return random predictions of all pairs of residues of proteins of 12 to 19 residues."""
    sizes = torch.from_numpy(rng.integers(12, 20, proteins))
    separation = torch.cat([torch.triu_indices(n, n, 1).diff(dim=0)[0] for n in sizes.tolist()])
    protein = torch.repeat_interleave(torch.arange(proteins), sizes * (sizes - 1) // 2)
    logits = torch.randn(len(protein), 1, generator=random) + protein[:, None]  # the level depends on the protein
    y = torch.from_numpy(rng.random((len(protein), 1)) < 0.1).float()
    y[rng.random((len(protein), 1)) < 0.2] = torch.nan
    return SplitPredictions(logits, y, pairs=ResiduePairs(protein, separation, sizes), protein=protein)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *(("classes", name) for name in ("accuracy", "macro_f1", "perplexity", "recovery")),
        *(("classes", name) for name in ("perplexity_mean", "recovery_mean", "recovery_median")),
        *(("binary", name) for name in ("auprc", "auroc", "dice", "mcc", "dice_mean")),
        *(("pairs", name) for name in ("auprc", "auroc", "mcc", "precision_l_6", "precision_l5_6")),
        *(("vectors", name) for name in ("mae", "rmse", "rmsd", "lddt")),
        *(("values", name) for name in ("pearson", "pearson_undefined")),
        *(("values", name) for name in ("mae", "rmse", "pearson_overall")),
        *(("values", metric.name) for metric in (pearson_of_means, spearman_of_means, rmse_of_means)),
    ],
)
def test_weighted_metrics_equal_those_of_resampled_rows(kind, name):
    predictions, metric = example(kind), registry.metrics.get(name)
    rows = Metric(name, metric.mode, metric.function)  # not the registered one: computed from the rows
    fast, slow = (bootstrap_scores(predictions, m, resamples=40, seed=3) for m in (metric, rows))
    np.testing.assert_allclose(fast, slow, rtol=1e-5, atol=1e-7)
    assert np.ptp(fast) > 0
    for found, sample in zip(fast, np.random.default_rng(3).integers(0, 8, (40, 8)), strict=True):
        parts = [(predictions.protein == p).nonzero().flatten() for p in sample.tolist()]
        copy = torch.repeat_interleave(torch.arange(8), torch.tensor([len(part) for part in parts]))
        expected = float(metric(predictions.take(torch.cat(parts), copy)))
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-7, nan_ok=True)


@pytest.mark.parametrize("name", ["auprc", "auroc"])
def test_ranking_metrics_do_not_depend_on_how_many_samples_are_computed_at_once(name, monkeypatch):
    predictions = example("binary", proteins=20)
    together = bootstrap_scores(predictions, registry.metrics.get(name), resamples=40)
    monkeypatch.setattr(weighted_metrics, "_AT_ONCE", 1)  # one sample
    np.testing.assert_allclose(
        together, bootstrap_scores(predictions, registry.metrics.get(name), resamples=40), rtol=1e-12
    )


def test_interval_equals_scipy_percentiles():
    predictions = example("values", proteins=30)
    interval = percentile_interval(bootstrap_scores(predictions, registry.metrics.get("rmse"), resamples=4000))
    known = ~torch.isnan(predictions.y[:, 0])
    square = ((predictions.logits - predictions.y)[:, 0].square().double()).nan_to_num()
    sums = [np.bincount(predictions.protein, x, minlength=30) for x in (square.numpy(), known.numpy().astype(float))]
    expected = bootstrap(
        tuple(sums),
        lambda s, n, axis: np.sqrt(s.sum(axis) / n.sum(axis)),
        paired=True,
        vectorized=True,
        n_resamples=4000,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert (interval.low, interval.high) == pytest.approx(tuple(expected), abs=0.03)


def test_copies_of_a_protein_are_separate_chains():
    predictions = example("values", proteins=3)
    once = [int((predictions.protein == p).sum()) for p in range(3)]
    rows = torch.cat([torch.nonzero(predictions.protein == p).flatten() for p in (1, 1, 0)])
    copy = torch.repeat_interleave(torch.arange(3), torch.tensor([once[1], once[1], once[0]]))
    sample = predictions.take(rows, copy)
    assert len(sample.chain.unique()) == 2 + 2 + 1  # the second protein has two chains
    assert sample.protein.tolist() == copy.tolist()


def test_resamples_without_positives_are_left_out_and_counted():
    protein = torch.arange(4)
    y = torch.tensor([[1.0], [0.0], [0.0], [0.0]])
    predictions = SplitPredictions(torch.tensor([[2.0], [1.0], [0.0], [-1.0]]), y, protein=protein)
    scores = bootstrap_scores(predictions, registry.metrics.get("auprc"))
    interval = percentile_interval(scores)
    share = (3 / 4) ** 4 + (1 / 4) ** 4  # no positives, or only positives
    assert interval.undefined == np.isnan(scores).sum() == pytest.approx(1000 * share, abs=60)
    assert interval.low <= 1.0 == interval.high
    nothing = percentile_interval(np.array([np.nan, np.nan, 1.0]))
    assert math.isnan(nothing.low) and nothing.undefined == 2


def test_two_models_are_compared_on_the_same_samples():
    one, two = example("classes", seed=0), example("classes", seed=0)
    scores = [bootstrap_scores(o, registry.metrics.get("accuracy")) for o in (one, two)]
    assert np.array_equal(*scores)


def test_split_size_counts_proteins_with_known_labels_and_positives():
    y = torch.tensor([[1.0], [0.0], [torch.nan], [0.0]])
    size = count_split(SplitPredictions(torch.zeros(4, 1), y, protein=torch.tensor([0, 0, 1, 2])))
    assert (size.proteins, size.with_positives) == (2, 1)
    assert size.is_small
    assert not SplitSize(10).is_small
    assert SplitSize(9).is_small and SplitSize(50, 4).is_small


def test_one_protein_has_no_interval():
    one = SplitPredictions(torch.zeros(5, 2), torch.tensor([0, 0, 1, 1, 0]), protein=torch.zeros(5, dtype=torch.int64))
    scores = bootstrap_scores(one, registry.metrics.get("accuracy"))
    assert np.isnan(scores).all() and math.isnan(percentile_interval(scores).low)
    (line,) = SplitScores("accuracy", scores, count_split(one), "x").summary("test")
    assert "no interval over 1 protein" in line and "95 %" not in line


def test_positives_are_named_for_yes_no_labels_only():
    assert "positives" not in SplitSize(4).warning() and SplitSize(4).is_small
    assert "at least 10, 5 with positives" in SplitSize(4, 1).warning()


@pytest.mark.parametrize(("kind", "name"), [("binary", "auprc"), ("classes", "accuracy"), ("values", "rmse")])
def test_copies_of_proteins_in_clusters_have_the_samples_of_the_proteins_alone(kind, name):
    once, metric = example(kind, proteins=6), registry.metrics.get(name)
    protein = once.protein_of_rows
    twice = once.take(torch.arange(len(protein)).repeat(2), torch.cat([protein, protein + 6]))
    expected = bootstrap_scores(once, metric, resamples=50)
    found = bootstrap_scores(twice, metric, clusters=[0, 1, 2, 3, 4, 5] * 2, resamples=50)
    assert np.allclose(found, expected, rtol=1e-6, equal_nan=True) and np.nanstd(found) > 0
    narrow = bootstrap_scores(twice, metric, resamples=50)
    assert np.nanstd(narrow) < np.nanstd(found)


@pytest.mark.parametrize(
    ("kind", "name"), [("binary", "auprc"), ("binary", "mcc"), ("classes", "accuracy"), ("values", "pearson_overall")]
)
def test_with_one_vote_per_cluster_copies_of_a_protein_count_once(kind, name):
    once, metric = example(kind, proteins=6), registry.metrics.get(name)
    protein = once.protein_of_rows
    of_first = (protein == 0).nonzero().flatten()
    rows = torch.cat([torch.arange(len(protein)), of_first, of_first])
    copies = once.take(rows, torch.cat([protein, torch.full_like(of_first, 6), torch.full_like(of_first, 7)]))
    found = cluster_scores(copies, metric, clusters=[0, 1, 2, 3, 4, 5, 0, 0], resamples=50)
    assert found[0] == pytest.approx(float(metric(once)), rel=1e-5)
    assert np.allclose(found[1:], bootstrap_scores(once, metric, resamples=50), rtol=1e-5, equal_nan=True)
    assert found[0] != pytest.approx(float(metric(copies)), rel=1e-3)


def test_metrics_without_weights_have_no_value_per_cluster():
    pairs = example("pairs")
    assert cluster_scores(pairs, registry.metrics.get("precision_l_6"), clusters=list(range(8))) is None


def test_a_split_of_copies_is_counted_by_cluster():
    y = torch.tensor([[1.0], [0.0], [0.0], [0.0]])
    predictions = SplitPredictions(torch.zeros(4, 1), y, protein=torch.arange(4))
    size = count_split(predictions, [7, 7, 7, 3])
    assert (size.proteins, size.clusters, size.units) == (4, 2, 2)
    assert size.text() == "4 proteins in 2 clusters, 1 with positives"
    assert count_split(predictions, [0, 1, 2, 3]).clusters is None
    assert count_split(predictions, [5, 5, 5, 5]).has_no_interval
    scores = bootstrap_scores(predictions, registry.metrics.get("auprc"), clusters=[5, 5, 5, 5])
    assert np.isnan(scores).all()
