"""Every registered featurizer on real entries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from protgraph import featurizers
from protgraph.featurize import Featurizer, NodeFeaturizer
from protgraph.testing.protein_fixtures import make_alignment, with_ligands

# Those of line graphs need one: tests/featurize/test_line_graph.py. Node sets: tests/model/test_node_sets.py.
NAMES = sorted(
    name
    for name in set(featurizers.names()) - {"edge_cosine", "edge_point", "line_graph"}
    if not issubclass(featurizers.get(name), NodeFeaturizer)
)


@pytest.fixture(scope="module")
def proteins(proteins):
    """Return the committed entries for featurizers that read ligands, another chain or an alignment.

    They get artificial molecules and sequences, and entries of one chain are cut in two at the middle.
    """
    cut = [
        replace(_of_two_chains(residues), alignment=make_alignment(residues.aatype, seed=0)) for residues in proteins
    ]
    return [with_ligands(residues, 30, seed=0) for residues in cut]


def _of_two_chains(residues):
    if len(residues.chain_names) > 1:
        return residues
    first = np.arange(len(residues)) < len(residues) // 2
    return replace(residues, chain=np.where(first, residues.chain, residues.chain_names[0] + "2"))


def test_the_built_in_featurizers_are_registered():
    assert len(NAMES) >= 15
    assert all(issubclass(featurizers.get(name), Featurizer) for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_writes_exactly_its_fields_in_their_declared_form(proteins, plan_of, name):
    plan = plan_of(name)
    for residues in proteins[:4]:
        graph = plan.featurize(plan.precompute(residues))
        assert graph.validate()
        for field in featurizers.get(name).writes:
            if field != "edge_index":
                assert tuple(graph[field].shape[1:]) == plan.fields[field].trailing_shape, field
                # these entries are measured, and no antibodies
                is_zero = name in ("plddt", "variable_domain")
                assert graph[field].float().abs().max() > 0 or is_zero, field
