"""Evaluation uses each protein once, does not depend on batches, and restores the training mode."""

from __future__ import annotations

import pytest
import torch

from protgraph import registry
from protgraph.evaluation import evaluate
from protgraph.evaluation.evaluation import predict_split
from protgraph.labels import prepare


@pytest.fixture
def store(trained, small):
    return prepare(small, trained.task, trained.model.plan).splits["train"]


def test_predictions_contain_each_residue_of_each_chain_once(trained, store):
    whole = predict_split(trained.model, store, trained.task)
    assert len(whole.y) == len(whole.logits) == len(whole.chain) == int(store.sizes.sum())
    lengths = torch.unique(whole.chain, return_counts=True)[1]
    assert sorted(lengths.tolist()) == sorted(store.sizes.tolist())


def test_metrics_do_not_depend_on_the_batches(trained, store):
    single, together = (predict_split(trained.model, store, trained.task, max_nodes=n) for n in (1, 10**6))
    for name in ("perplexity", "recovery_median", "accuracy"):
        assert registry.metrics.get(name)(single) == pytest.approx(registry.metrics.get(name)(together), rel=1e-5)


def test_accuracy_equals_direct_counting(trained, store):
    correct = known = 0
    with torch.no_grad():
        for graph in store:
            is_known = graph.y >= 0
            correct += int((trained.model(graph)["logits"].argmax(1) == graph.y)[is_known].sum())
            known += int(is_known.sum())
    assert evaluate(trained.model, store, trained.task)["accuracy"] == pytest.approx(correct / known)


def test_the_training_mode_is_restored(trained, store):
    for mode in (True, False):
        trained.model.train(mode)
        evaluate(trained.model, store, trained.task)
        assert trained.model.training is mode
    assert torch.is_grad_enabled()
