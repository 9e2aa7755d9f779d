"""Component specs: frozen plain data that can be stored as JSON and pickled."""

from __future__ import annotations

import copy
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


def test_list_of_reads_sets_the_inputs_of_variadic_components():
    assert component("embed", reads=["aatype", "dihedral"]).inputs == ("aatype", "dihedral")


def test_options_must_be_plain_data():
    with pytest.raises(WiringError, match="mlp"):
        component("mlp", act=len)


def test_reads_must_not_be_a_string():
    with pytest.raises(WiringError, match="'aatype'"):
        component("embed", reads="aatype")


def test_components_are_immutable():
    n = component("gat", heads=4)
    with pytest.raises(TypeError):
        n.options["heads"] = 5
    assert copy.deepcopy([n])[0] is n


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (3, "3"),
        ({"nam": "gat"}, "'name'"),
        ({"name": "gat", "option": {}}, "'options'"),
        ({"name": 3}, "name = 3"),
        ({"name": "gat", "options": [1]}, "component 'gat'.options"),
        ({"name": "gat", "reads": {"h": 1}}, "component 'gat'.reads.h"),
        ({"name": "embed", "inputs": "aatype"}, "component 'embed'.inputs"),
    ],
    ids=["number", "missing_name", "unknown_key", "name", "options", "reads", "inputs"],
)
def test_invalid_data_raise_with_the_path_of_the_key(data, part):
    with pytest.raises(WiringError) as e:
        as_component(data)
    assert part in str(e.value)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"reads": {"h": 1}}, "component 'gat'.reads.h = 1"),
        ({"reads": ["h"]}, "component 'gat'.reads = ['h']"),
        ({"writes": {1: "h"}}, "component 'gat'.writes"),
        ({"inputs": "aatype"}, "component 'gat'.inputs = 'aatype'"),
        ({"options": [1]}, "component 'gat'.options = [1]"),
    ],
    ids=["reads_value", "reads_list", "writes_key", "inputs", "options"],
)
def test_the_constructor_checks_types_as_from_dict_does(options, part):
    with pytest.raises(WiringError) as e:
        ComponentSpec("gat", **options)
    assert part in str(e.value)
