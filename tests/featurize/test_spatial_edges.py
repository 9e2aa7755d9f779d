"""Edge featurizers return the edges of the neighbor search and give valid graphs."""

from __future__ import annotations

import numpy as np
import pytest

from protgraph.featurize import FeaturePlan, build_graph
from protgraph.featurize.base import EdgeList
from protgraph.featurize.spatial_edges import Contact, Knn, Radius, Sequence
from protgraph.structure.neighbors import search as neighbors

ALL = [Knn, Radius, Contact, Sequence]


def test_edges_equal_those_of_the_search(proteins):
    for residues in proteins:
        pos, atoms, owner = residues.pos, residues.atom_pos, residues.atom_residue
        for featurizer, expected in (
            (Knn(k=9), neighbors.knn(pos, 9)),
            (Radius(radius=7.5), neighbors.radius(pos, 7.5)),
            (Contact(cutoff=4.0), neighbors.contact(pos, atoms, owner, 4.0)),
            (Sequence(k=2), neighbors.sequence(pos, residues.chain_number, residues.seq_pos, 2)),
        ):
            result = featurizer(residues)
            assert np.array_equal([result.source, result.target], expected)
            assert result.degree == (9 if isinstance(featurizer, Knn) else None)


def test_index_of_edges_is_sources_and_targets():
    source, target = np.arange(12).reshape(2, 6)
    index = EdgeList(source, target).index
    assert np.array_equal(index, np.stack([source, target])) and index.flags.writeable


@pytest.mark.parametrize("n", [1, 2, 5])
def test_short_chains_have_all_other_residues_as_neighbors(proteins, n):
    short = proteins[0].select(np.arange(len(proteins[0])) < n)
    assert Knn()(short).degree == n - 1
    for featurizer in ALL:
        result = featurizer()(short)
        assert len(result.source) == len(result.target) <= n * (n - 1)
    graph = build_graph(short, ["knn", "edge_distance", "edge_direction", "edge_rbf", "edge_offset"])
    assert graph.num_edges == n * (n - 1)


@pytest.mark.parametrize("name", ["knn", "radius", "contact", "sequence"])
def test_every_kind_gives_a_valid_graph(proteins, name):
    for residues in proteins:
        graph = FeaturePlan([name]).precompute(residues)
        assert graph.validate()
        assert graph.num_edges > 0
