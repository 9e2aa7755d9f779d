"""Masking chooses 15 % of residues, 80/10/10, and hides their types; the next residue is predicted everywhere."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from protgraph.data.graph.protein_graph import ProteinGraph, collate
from protgraph.errors import OptionError
from protgraph.task import SplitPredictions, compute_metrics
from protgraph.task.language_modeling import MASKED_LM, NEXT_RESIDUE, Masking
from protgraph.testing.protein_fixtures import make_protein

N = 200_000


def graph_of(types: torch.Tensor) -> ProteinGraph:
    y = types.masked_fill(types == 20, -1)
    none = torch.zeros_like(types, dtype=torch.bool)
    return ProteinGraph(pos=torch.zeros(len(types), 3), aatype=types, masked=none, y=y, y_level="node")


@pytest.fixture(scope="module")
def many():
    """Many residues, one in 21 of unknown type, and what is shown of them."""
    types = torch.randint(21, (N,), generator=torch.Generator().manual_seed(1))
    shown, y = MASKED_LM.inputs.apply(graph_of(types), torch.Generator().manual_seed(2), training=True)
    return types, shown, y


def near(count: int, total: int, p: float) -> bool:
    """Within five standard deviations of a binomial."""
    return abs(count - p * total) < 5 * math.sqrt(total * p * (1 - p))


def test_15_percent_are_chosen_and_80_percent_of_these_are_masked(many):
    types, shown, y = many
    chosen, known = y >= 0, types < 20
    assert near(int(chosen.sum()), int(known.sum()), 0.15)
    hidden = chosen & shown.masked
    other = chosen & ~shown.masked & (shown.aatype != types)
    same = chosen & ~shown.masked & (shown.aatype == types)
    assert near(int(hidden.sum()), int(chosen.sum()), 0.8)
    assert near(int(other.sum()), int(chosen.sum()), 0.1 * 19 / 20)  # a random type may be its own
    assert near(int(same.sum()), int(chosen.sum()), 0.1 + 0.1 / 20)
    for a in range(20):
        assert near(int((shown.aatype[other] == a).sum()), int(other.sum()), 1 / 20)


def test_other_residues_are_unchanged_and_unknown_types_are_never_chosen(many):
    types, shown, y = many
    assert torch.equal(shown.aatype[y < 0], types[y < 0])
    assert not shown.masked[y < 0].any()
    assert (shown.aatype[shown.masked] == 20).all()
    assert torch.equal(y[y >= 0], types[y >= 0])
    assert (y[types == 20] == -1).all()


def test_training_masks_are_drawn_at_every_use_and_keep_the_input():
    graph, generator = graph_of(torch.arange(20).repeat(10)), torch.Generator().manual_seed(0)
    before = graph.clone()
    a, b = (MASKED_LM.inputs.apply(graph, generator, training=True)[1] for _ in range(2))
    assert not torch.equal(a, b)
    assert torch.equal(graph.aatype, before.aatype)
    assert torch.equal(graph.masked, before.masked)


def test_a_batch_is_masked_as_one():
    batch = collate([graph_of(torch.arange(20)), graph_of(torch.arange(15))])
    shown, y = MASKED_LM.inputs.apply(batch, torch.Generator().manual_seed(0), training=True)
    assert shown.aatype.shape == y.shape == (35,)
    assert shown.num_graphs == 2
    assert shown.sizes == (20, 15)


def test_atoms_of_a_residue_are_masked_together():
    types = torch.randint(20, (500,), generator=torch.Generator().manual_seed(4))
    one = graph_of(types.repeat_interleave(4))
    one.residue = torch.arange(500).repeat_interleave(4)
    one.y = one.y.masked_fill(torch.arange(2000) % 4 != 1, -1)  # the label sits on CA
    shown, y = MASKED_LM.inputs.apply(collate([one, one]), torch.Generator().manual_seed(5), training=True)
    seen, hidden = shown.aatype.view(-1, 4), shown.masked.view(-1, 4)
    assert (seen == seen[:, :1]).all()
    assert (hidden == hidden[:, :1]).all()
    assert 0 < int(hidden[:, 0].sum()) < 300
    assert ((seen[:, 0] == types.repeat(2)) | (y.view(-1, 4)[:, 1] >= 0)).all()
    assert not torch.equal(hidden[:500], hidden[500:])


def test_copying_visible_types_in_evaluation_is_no_better_than_chance(many):
    """In an evaluation: seen types say nothing of those that are asked for; in training one in ten would."""
    types = many[0]
    shown, y = MASKED_LM.inputs.apply(graph_of(types), torch.Generator().manual_seed(3), training=False)
    copied = 10 * torch.nn.functional.one_hot(shown.aatype, 21)[:, :20].float()
    found = compute_metrics(MASKED_LM.metrics, SplitPredictions(copied, y))
    assert near(round(found["accuracy"] * int((y >= 0).sum())), int((y >= 0).sum()), 1 / 20)
    assert found["perplexity"] == pytest.approx(20)
    _, seen, asked = many
    assert near(int((seen.aatype == asked)[asked >= 0].sum()), int((asked >= 0).sum()), 0.1 + 0.1 / 20)


def test_fractions_above_1_are_an_error():
    with pytest.raises(OptionError, match="Masking"):
        Masking(masked=0.8, replaced=0.3)


@pytest.mark.parametrize("task", [MASKED_LM, NEXT_RESIDUE], ids=lambda t: t.name)
def test_featurizers_see_no_types_and_labels_are_the_types(task):
    residues = make_protein((9, 4))
    assert (task.inputs.visible(residues, "made").aatype == 20).all()
    assert np.array_equal(task.labels(residues), residues.aatype)
    assert task.inputs.visible_types


def test_next_residue_keeps_the_graph_and_requires_a_causal_model():
    graph = graph_of(torch.tensor([3, 20, 5]))
    shown, y = NEXT_RESIDUE.inputs.apply(graph, torch.Generator(), training=True)
    assert shown is graph
    assert y.tolist() == [3, -1, 5]
    assert NEXT_RESIDUE.inputs.causal
    assert not MASKED_LM.inputs.causal
