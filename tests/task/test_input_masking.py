"""Inputs of models: random decoding orders, residue types for decoders only, and invalid options."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data

from protgraph.errors import DatasetError
from protgraph.task import InputMasking, with_random_order
from protgraph.task.builtin import INVERSE_FOLDING


def test_random_orders_are_uniform_permutations():
    graph = Data(aatype=torch.arange(6), y=torch.arange(6), num_nodes=6)
    generator = torch.Generator().manual_seed(0)
    ranks = torch.stack([with_random_order(graph, generator)[0].decoding_rank for _ in range(4000)])
    assert torch.equal(ranks.sort(1)[0], torch.arange(6).expand(4000, 6))
    before = (ranks[:, :, None] < ranks[:, None]).double().mean(0)  # (6, 6) how often i is decoded before j
    share = before[~torch.eye(6, dtype=torch.bool)]
    assert (share - 0.5).abs().max() < 5 * (0.25 / 4000) ** 0.5  # five standard errors
    assert "decoding_rank" not in graph


def test_equal_seeds_give_equal_orders_and_labels_are_unchanged():
    graph = Data(aatype=torch.arange(9), y=torch.arange(9), num_nodes=9)
    a, b = (with_random_order(graph, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(a[0].decoding_rank, b[0].decoding_rank)
    assert torch.equal(a[1], graph.y)


def test_residue_types_are_visible_to_decoders_only():
    assert not INVERSE_FOLDING.inputs.visible_types
    asked = INVERSE_FOLDING.for_decoder()
    assert asked.inputs.visible_types and asked.inputs.causal and asked.inputs.hidden == INVERSE_FOLDING.inputs.hidden
    assert asked.for_decoder() is asked


@pytest.mark.parametrize("wrong", [{"hidden": {"sequence"}}, {"noise": -0.1}])
def test_unknown_parts_and_negative_noise_are_errors(wrong):
    with pytest.raises(DatasetError, match="sequence|-0.1"):
        InputMasking(**wrong)
