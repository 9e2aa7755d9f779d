"""Conformity suite: checks that a featurizer, layer, head or model does what its declarations promise.

For plugin authors, as ``protgraph check NAME`` or in their own tests::

    import protgraph as pg

    @pg.testing.parametrize_with_checks(["my_layer", "my_model"])
    def test_conformity(component, check):
        check(component)
"""

from __future__ import annotations

from protgraph.data.graph.conformity import Conformity
from protgraph.testing.component import Component, find_components
from protgraph.testing.model_wiring import offline_models
from protgraph.testing.protein_fixtures import degenerate_proteins, make_protein
from protgraph.testing.runner import ConformityError, release_modules
from protgraph.testing.suite import CHECKS, Check, Report, check_component, parametrize_with_checks
from protgraph.testing.symmetry import (
    ComparisonError,
    act,
    random_reflections,
    random_rotations,
    relative_error,
    representation,
)

__all__ = [
    "CHECKS",
    "Check",
    "ComparisonError",
    "Component",
    "Conformity",
    "ConformityError",
    "Report",
    "act",
    "check_component",
    "degenerate_proteins",
    "find_components",
    "make_protein",
    "offline_models",
    "parametrize_with_checks",
    "random_reflections",
    "random_rotations",
    "relative_error",
    "release_modules",
    "representation",
]
