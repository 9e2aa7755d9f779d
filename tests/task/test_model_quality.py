"""Metrics of whole models from predictions per residue, against scipy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import pearsonr, spearmanr

from protgraph import registry
from protgraph.task import SplitPredictions
from protgraph.task.model_quality import MODEL_QUALITY, pearson_of_means, rmse_of_means, spearman_of_means


@pytest.fixture
def predictions() -> SplitPredictions:
    """Twelve proteins of 3 to 14 residues; some labels are unknown, of the last protein all."""
    rng = np.random.default_rng(0)
    protein = np.repeat(np.arange(12), np.arange(3, 15))
    y = rng.random(len(protein)) * 0.3 + 0.05 * protein
    z = y + rng.normal(scale=0.3, size=len(y))
    y[(np.arange(len(y)) % 4 == 1) | (protein == 11)] = np.nan
    y, z = (torch.tensor(x, dtype=torch.float32)[:, None] for x in (y, z))
    return SplitPredictions(z, y, protein=torch.tensor(protein))


def means(o: SplitPredictions) -> tuple[np.ndarray, np.ndarray]:
    z, y, protein = o.logits[:, 0].double().numpy(), o.y[:, 0].double().numpy(), o.protein.numpy()
    known = [(protein == p) & ~np.isnan(y) for p in range(11)]
    return np.array([z[k].mean() for k in known]), np.array([y[k].mean() for k in known])


def test_metrics_of_means_are_those_of_scipy(predictions):
    x, y = means(predictions)
    assert pearson_of_means(predictions) == pytest.approx(pearsonr(x, y).statistic, abs=1e-9)
    assert spearman_of_means(predictions) == pytest.approx(spearmanr(x, y).statistic, abs=1e-9)
    assert rmse_of_means(predictions) == pytest.approx(np.sqrt(np.mean((x - y) ** 2)), abs=1e-9)
    assert pearson_of_means(predictions) != pytest.approx(spearman_of_means(predictions), abs=1e-3)


def test_equal_means_have_their_mean_rank(predictions):
    z = torch.tensor([1.0, 1, 2, 2, 3, 0])[:, None]
    y = torch.tensor([0.1, 0.2, 0.3, 0.3, 0.1, 0.5])[:, None]
    o = SplitPredictions(z, y, protein=torch.arange(6))
    assert spearman_of_means(o) == pytest.approx(spearmanr(z[:, 0], y[:, 0]).statistic, abs=1e-9)


def test_the_task_hides_b_factors_where_predictions_have_their_confidence():
    assert "b_factor" in MODEL_QUALITY.inputs.hidden
    assert {metric.name for metric in MODEL_QUALITY.metrics} <= set(registry.metrics)
