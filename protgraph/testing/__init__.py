"""The conformity suite: does a featurizer, layer, head or model hold what its declarations promise?

For plugin authors, as ``protgraph check NAME`` or in their own tests::

    import protgraph as pg

    @pg.testing.parametrize_with_checks(["my_layer", "my_model"])
    def test_conformity(component, check):
        check(component)
"""

from __future__ import annotations

from protgraph.data.graph.conformity import Conformity
from protgraph.testing.offline_models import offline_models
from protgraph.testing.parametrize import parametrize_with_checks
from protgraph.testing.protein_fixtures import degenerate_proteins, make_protein
from protgraph.testing.subject import Subject, subjects
from protgraph.testing.suite import CHECKS, Check, Result, check
from protgraph.testing.trial import ConformityError

__all__ = [
    "CHECKS",
    "Check",
    "Conformity",
    "ConformityError",
    "Result",
    "Subject",
    "check",
    "degenerate_proteins",
    "make_protein",
    "offline_models",
    "parametrize_with_checks",
    "subjects",
]
