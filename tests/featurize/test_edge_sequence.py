"""Codes of the relative sequence position of two residues."""

from __future__ import annotations

import math

import pytest
import torch

from protgraph.errors import OptionError
from protgraph.featurize.edge_features import EdgeSameChain, EdgeSinusoid
from protgraph.ops import Edges


@pytest.fixture
def f(float64):
    index = torch.tensor([[1, 2, 0, 3, 0], [0, 0, 1, 2, 3]])
    return {"edges": Edges(index, 4), "seq_pos": torch.tensor([0, 1, 9, 0]), "chain": torch.tensor([0, 0, 0, 1])}


def test_same_chain_is_1_within_a_chain_and_0_between_chains(f):
    assert EdgeSameChain()(f)["edge_same_chain"].flatten().tolist() == [1, 1, 1, 0, 0]


def test_codes_equal_the_formula_and_count_gaps(f):
    features = EdgeSinusoid(dim=6)(f)["edge_sinusoid"]
    for row, offset in zip(features, (1, 9, -1), strict=False):
        angles = [offset * 10000 ** (-2 * c / 6) for c in range(3)]
        assert row.tolist() == pytest.approx([*map(math.cos, angles), *map(math.sin, angles)])
    assert not features[3:].any()  # other chain


def test_the_order_of_nodes_does_not_matter(f):
    order = torch.tensor([2, 0, 3, 1])  # new place of each node
    index = torch.stack([order[f["edges"].source(torch.arange(4))], order[f["edges"].target(torch.arange(4))]])
    by_target = index[1].argsort(stable=True)
    other = {k: v[order.argsort()] for k, v in f.items() if k != "edges"} | {"edges": Edges(index[:, by_target], 4)}
    for featurizer, name in ((EdgeSinusoid(), "edge_sinusoid"), (EdgeSameChain(), "edge_same_chain")):
        assert torch.equal(featurizer(other)[name], featurizer(f)[name][by_target])


def test_odd_widths_raise():
    with pytest.raises(OptionError, match="dim="):
        EdgeSinusoid(dim=7)
