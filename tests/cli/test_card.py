"""Command ``protgraph card``: the expressivity report of a layer."""

from __future__ import annotations

import pytest

from protgraph.cli.card import _options
from protgraph.errors import OptionError


def test_the_report_of_a_layer_is_printed(run):
    result = run("card", "tfn", "--option", "lmax=2", "--option", "irreps=16x0e+4x1o+4x2e")
    assert result.code == 0
    assert "star of 2 rays" in result.out and "from 2 layers on" in result.out
    assert "tfn(edge_attr=edge_rbf)" in result.out


def test_options_are_numbers_where_they_can_be():
    assert _options(["lmax=2", "irreps=8x0e", "gate=false"]) == {"lmax": 2, "irreps": "8x0e", "gate": False}
    with pytest.raises(OptionError, match="NAME=VALUE"):
        _options(["lmax"])
