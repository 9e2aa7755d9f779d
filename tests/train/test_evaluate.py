"""Evaluation sees every protein once, whatever the batches, and leaves the model as it was."""

from __future__ import annotations

import pytest
import torch

from protgraph.task import METRICS
from protgraph.train import evaluate, prepare
from protgraph.train.evaluate import predict_split


@pytest.fixture
def store(trained, small):
    return prepare(small, trained.task, trained.model.plan).splits["train"]


def test_an_outcome_holds_every_residue_of_every_chain_once(trained, store):
    whole = predict_split(trained.model, store, trained.task)
    assert len(whole.y) == len(whole.logits) == len(whole.chain) == int(store.sizes.sum())
    lengths = torch.unique(whole.chain, return_counts=True)[1]
    assert sorted(lengths.tolist()) == sorted(store.sizes.tolist())


def test_metrics_do_not_depend_on_the_batches(trained, store):
    one, all_ = (predict_split(trained.model, store, trained.task, max_nodes=n) for n in (1, 10**6))
    for name in ("perplexity", "recovery_median", "accuracy"):
        assert METRICS[name](one) == pytest.approx(METRICS[name](all_), rel=1e-5)


def test_metrics_are_those_of_the_model_on_each_protein(trained, store):
    right = known = 0
    with torch.no_grad():
        for graph in store:
            there = graph.y >= 0
            right += int((trained.model(graph)["logits"].argmax(1) == graph.y)[there].sum())
            known += int(there.sum())
    assert evaluate(trained.model, store, trained.task)["accuracy"] == pytest.approx(right / known)


def test_the_model_is_in_the_mode_that_it_was_in(trained, store):
    for mode in (True, False):
        trained.model.train(mode)
        evaluate(trained.model, store, trained.task)
        assert trained.model.training is mode
    assert torch.is_grad_enabled()
