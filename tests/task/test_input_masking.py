"""What a model is given: a random order for decoders shows every pair both ways round, and changes nothing given."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data

from protgraph.errors import DatasetError
from protgraph.task import InputMasking, with_random_order
from protgraph.task.builtin import INVERSE_FOLDING


def test_a_random_order_is_a_permutation_that_favors_nobody():
    graph = Data(aatype=torch.arange(6), y=torch.arange(6), num_nodes=6)
    generator = torch.Generator().manual_seed(0)
    ranks = torch.stack([with_random_order(graph, generator)[0].decoding_rank for _ in range(4000)])
    assert torch.equal(ranks.sort(1)[0], torch.arange(6).expand(4000, 6))
    before = (ranks[:, :, None] < ranks[:, None]).double().mean(0)  # (6, 6) how often i is decoded before j
    share = before[~torch.eye(6, dtype=torch.bool)]
    assert (share - 0.5).abs().max() < 5 * (0.25 / 4000) ** 0.5  # five standard errors
    assert "decoding_rank" not in graph


def test_the_same_generator_gives_the_same_order_and_all_labels_are_asked_for():
    graph = Data(aatype=torch.arange(9), y=torch.arange(9), num_nodes=9)
    a, b = (with_random_order(graph, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(a[0].decoding_rank, b[0].decoding_rank)
    assert torch.equal(a[1], graph.y)


def test_a_decoder_is_shown_types_and_other_models_are_not():
    assert not INVERSE_FOLDING.inputs.visible_types
    asked = INVERSE_FOLDING.for_decoder()
    assert asked.inputs.visible_types and asked.inputs.causal and asked.inputs.hidden == INVERSE_FOLDING.inputs.hidden
    assert asked.for_decoder() is asked


@pytest.mark.parametrize("wrong", [{"hidden": {"sequence"}}, {"noise": -0.1}])
def test_what_cannot_be_hidden_or_blurred_is_refused(wrong):
    with pytest.raises(DatasetError, match="sequence|-0.1"):
        InputMasking(**wrong)
