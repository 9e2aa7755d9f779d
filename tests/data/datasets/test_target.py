"""Targets: head, shape, validation."""

from __future__ import annotations

import pytest

from protgraph.data.datasets.target import Target
from protgraph.errors import DatasetError


def test_level_and_kind_determine_the_head():
    assert Target("ss", "node", "classification", 3).head_name == "node_classifier"
    assert Target("site", "node", "multilabel", 1).head_name == "node_multilabel"
    assert Target("ec", "graph", "classification", 7).head_name == "graph_classifier"
    assert Target("contact", "pair", "multilabel", 1).head_name == "contact"
    assert Target("shift", "node", "vectors", 1).head_name == "node_vector"
    assert Target("place", "node", "coordinates", 4).head_name == "coordinates"
    assert Target("x", "node", "regression", 1, head="mine").head_name == "mine"


def test_shape_of_vectors_and_coordinates_ends_with_xyz():
    assert Target("place", "node", "coordinates", 4).shape == (4, 3)
    assert Target("shift", "node", "vectors", 1).is_geometric
    assert Target("ss", "node", "classification", 3).shape == (3,)
    assert not Target("ss", "node", "classification", 3).is_geometric


def test_level_and_kind_without_head_raise():
    with pytest.raises(DatasetError, match="'regression'.*'pair'"):
        Target("d", "pair", "regression", 1)


def test_number_of_names_must_equal_the_size():
    with pytest.raises(DatasetError, match="size 3"):
        Target("ss", "node", "classification", 3, names=("H", "E"))
