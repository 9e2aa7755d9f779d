"""What a component may state about its own tests."""

from __future__ import annotations

import copy
import pickle

import pytest

from protgraph.data.graph.conformity import Conformity
from protgraph.errors import OptionError


def test_an_expected_failure_needs_a_reason():
    with pytest.raises(OptionError, match="'no_leak' has no reason"):
        Conformity(expected_failures={"no_leak": " "})


def test_instances_may_carry_it_through_copies():
    stated = Conformity(inputs={"h": "8x0e"}, nonnegative=["w"], tolerance=1e-3, expected_failures={"seed": "noise"})
    assert copy.deepcopy(stated) == stated == pickle.loads(pickle.dumps(stated))


def test_it_cannot_be_changed():
    with pytest.raises(TypeError):
        Conformity().options["dim"] = 8
