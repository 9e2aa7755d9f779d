"""Targets choose their head and refuse what contradicts itself."""

from __future__ import annotations

import pytest

from protgraph.data.datasets.target import Target
from protgraph.errors import DatasetError


def test_level_and_kind_choose_the_head():
    assert Target("ss", "node", "classification", 3).head_name == "node_classifier"
    assert Target("site", "node", "multilabel", 1).head_name == "node_multilabel"
    assert Target("ec", "graph", "classification", 7).head_name == "graph_classifier"
    assert Target("contact", "pair", "multilabel", 1).head_name == "contact"
    assert Target("shift", "node", "vectors", 1).head_name == "node_vector"
    assert Target("place", "node", "coordinates", 4).head_name == "coordinates"
    assert Target("x", "node", "regression", 1, head="mine").head_name == "mine"


def test_vectors_and_coordinates_have_xyz_last():
    assert Target("place", "node", "coordinates", 4).shape == (4, 3)
    assert Target("shift", "node", "vectors", 1).is_geometric
    assert Target("ss", "node", "classification", 3).shape == (3,)
    assert not Target("ss", "node", "classification", 3).is_geometric


def test_no_head_for_the_combination_is_an_error():
    with pytest.raises(DatasetError, match="'regression' per 'pair'"):
        Target("d", "pair", "regression", 1)


def test_names_must_fit_the_size():
    with pytest.raises(DatasetError, match="size 3"):
        Target("ss", "node", "classification", 3, names=("H", "E"))
