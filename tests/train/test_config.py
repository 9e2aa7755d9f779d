"""Types and ranges of training options."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from protgraph.errors import OptionError
from protgraph.train import FitConfig


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("epochs", 0),
        ("epochs", 2.5),
        ("epochs", "3"),
        ("epochs", True),
        ("seed", -1),
        ("lr", -1.0),
        ("lr", math.nan),
        ("patience", 0),
        ("weight_decay", -0.1),
        ("schedule", "linear"),
        ("precision", "float16"),
        ("pos_weight", "heavy"),
        ("pos_weight", 0.0),
        ("momentum", 0.9),
    ],
)
def test_options_of_a_wrong_type_or_out_of_range_are_errors(option, value):
    with pytest.raises(OptionError) as e:
        FitConfig(**{option: value})
    assert option in str(e.value) and repr(value) in str(e.value)


def test_replaced_options_are_checked():
    assert replace(FitConfig(), epochs=3).epochs == 3
    with pytest.raises(OptionError, match="epochs"):
        replace(FitConfig(), epochs=0)


def test_whole_numbers_are_accepted_for_floats():
    assert FitConfig(lr=1, max_time=60).lr == 1.0
