"""Loaders of published weights ask for options that change values and that the weights do not contain."""

from __future__ import annotations

import pytest
import torch
from protgraph_plugins.gearnet.reference import layers_from_torchdrug

from protgraph.errors import CheckpointError, OptionError
from protgraph.nn.layers.encoder import Encoder

#: Loader, a state, and required options.
CASES = {
    "gearnet": (
        layers_from_torchdrug,
        lambda: {f"layers.0.{k}": v for k, v in _convolution().items()},
        {"shortcut": False},
    ),
    "gearnet convolution": (layers_from_torchdrug, lambda: _convolution(), {"reduce": "sum"}),
}


def _convolution():
    return {
        "self_loop.weight": torch.ones(4, 3),
        "self_loop.bias": torch.ones(4),
        "linear.weight": torch.ones(4, 6),
        "linear.bias": torch.ones(4),
    }


@pytest.mark.parametrize("case", CASES)
def test_each_option_that_the_weights_do_not_contain_is_required(case):
    load, state, options = CASES[case]
    assert load(state(), **options)
    for name in options:
        with pytest.raises(OptionError, match=name):
            load(state(), **{k: v for k, v in options.items() if k != name})


@pytest.mark.parametrize("case", CASES)
def test_unknown_choices_are_refused(case):
    load, state, options = CASES[case]
    for name in options:
        with pytest.raises(OptionError, match=name):
            load(state(), **options | {name: "other"})


@pytest.mark.parametrize("case", CASES)
def test_unknown_and_missing_parameters_are_refused(case):
    load, state, options = CASES[case]
    with pytest.raises(CheckpointError):
        load(state() | {"other.weight": torch.ones(1)}, **options)
    for name in [k for k in state() if k.endswith("weight")][:1]:
        with pytest.raises(CheckpointError):
            load({k: v for k, v in state().items() if k != name}, **options)


def test_states_of_other_modules_are_refused():
    with pytest.raises(CheckpointError):
        Encoder.from_reference({"other.weight": torch.ones(2, 2)}, heads=4)
