"""Settings of the conformity tests: validation, copies, immutability."""

from __future__ import annotations

import copy
import pickle

import pytest

from protgraph.data.graph.conformity import Conformity
from protgraph.errors import OptionError


def test_expected_failure_without_reason_raises():
    with pytest.raises(OptionError, match="'no_leak'"):
        Conformity(expected_failures={"no_leak": " "})


def test_settings_survive_copy_and_pickle():
    settings = Conformity(inputs={"h": "8x0e"}, nonnegative=["w"], tolerance=1e-3, expected_failures={"seed": "noise"})
    assert copy.deepcopy(settings) == settings == pickle.loads(pickle.dumps(settings))


def test_settings_are_immutable():
    with pytest.raises(TypeError):
        Conformity().options["dim"] = 8
