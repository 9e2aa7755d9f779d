"""Layers with tensor products compile on fields of every kind of irreps, which the check "compiled" leaves out."""

from __future__ import annotations

import pytest

from protgraph.testing.checks.compiled import compiled_error
from protgraph.testing.component import find_components
from protgraph.testing.runner import EXACT, Runner


@pytest.mark.slow
@pytest.mark.parametrize("name", ["se3_transformer"])
def test_a_layer_compiles_on_all_kinds_of_irreps(name):
    (found,) = find_components(name, kind="layer")
    small = {wiring.label for wiring in found.small_wirings}
    mixed = [wiring for wiring in found.wirings if wiring.label not in small]
    assert mixed and "2x2e" in mixed[-1].label
    assert compiled_error(Runner(found), mixed[-1], backend="eager") <= EXACT  # traced once for two sizes of batches
