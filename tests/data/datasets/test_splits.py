"""Random splits by group, and connected components against networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protgraph.data.datasets.splits import group_split, linked_groups
from protgraph.errors import DatasetError

IDS = [f"p{i:04d}" for i in range(1000)]


def test_fractions_of_a_random_split_are_exact():
    splits = group_split(IDS, fractions={"train": 0.7, "val": 0.1, "test": 0.2}, seed=3)
    assert {s: splits.count(s) for s in set(splits)} == {"train": 700, "val": 100, "test": 200}


@pytest.mark.slow
def test_split_depends_on_the_seed_only():
    assert group_split(IDS, seed=1) == group_split(IDS, seed=1)
    assert group_split(IDS, seed=1) != group_split(IDS, seed=2)


def test_order_of_proteins_does_not_change_their_splits():
    shuffled = [IDS[i] for i in np.random.default_rng(0).permutation(len(IDS))]
    assert dict(zip(IDS, group_split(IDS), strict=True)) == dict(zip(shuffled, group_split(shuffled), strict=True))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 20), min_size=1, max_size=80), st.integers(0, 5))
def test_no_group_is_divided(groups, seed):
    splits = group_split(groups, seed=seed)
    assert len(set(zip(groups, splits, strict=True))) == len(set(groups))


@pytest.mark.parametrize("seed", range(20))
def test_every_split_gets_a_group_if_there_are_enough(seed):
    assert set(group_split(["big"] * 50 + ["b", "c"], seed=seed)) == {"train", "val", "test"}


@pytest.mark.parametrize("fractions", [{"train": 0.5, "test": 0.6}, {"train": 1.5, "test": -0.5}, {}])
def test_invalid_fractions_raise(fractions):
    with pytest.raises(DatasetError):
        group_split(IDS, fractions=fractions)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sets(st.integers(0, 12), max_size=3), max_size=25))
def test_linked_groups_equal_networkx_components(links):
    graph = nx.Graph()
    graph.add_nodes_from(("item", i) for i in range(len(links)))
    graph.add_edges_from((("item", i), ("link", link)) for i, own in enumerate(links) for link in own)
    group = linked_groups(links)
    same = {
        (i, j)
        for part in nx.connected_components(graph)
        for k, i in part
        if k == "item"
        for m, j in part
        if m == "item"
    }
    assert {(i, j) for i in range(len(links)) for j in range(len(links)) if group[i] == group[j]} == same
    assert list(dict.fromkeys(group)) == list(range(len(set(group))))
