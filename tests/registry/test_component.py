"""Nodes are frozen plain data that survive JSON and pickling."""

from __future__ import annotations

import json
import pickle

import pytest

from protgraph.errors import WiringError
from protgraph.registry.component import ComponentSpec, as_component, component


def test_round_trip_through_json_and_pickle():
    n = component("gat", heads=4, reads={"edge_attr": "edge_rbf"}, writes={"h": "m"})
    assert ComponentSpec.from_dict(json.loads(json.dumps(n.to_dict()))) == n
    assert pickle.loads(pickle.dumps(n)) == n
    assert hash(n) == hash(ComponentSpec.from_dict(n.to_dict()))


def test_a_list_of_reads_is_for_variadic_components():
    assert component("embed", reads=["aatype", "dihedral"]).inputs == ("aatype", "dihedral")


def test_options_must_be_plain_data():
    with pytest.raises(WiringError, match="plain data"):
        component("mlp", act=len)


def test_a_string_of_reads_is_a_mistake_not_a_list_of_letters():
    with pytest.raises(WiringError, match="not a string"):
        component("embed", reads="aatype")


def test_nodes_cannot_change():
    n = component("gat", heads=4)
    with pytest.raises(TypeError):
        n.options["heads"] = 5


@pytest.mark.parametrize("bad", [3, {"nam": "gat"}, {"name": "gat", "option": {}}])
def test_what_is_no_node_is_refused(bad):
    with pytest.raises(WiringError):
        as_component(bad)
