"""Edges besides the nearest: as many as asked for, symmetric where they should be, odd options refused."""

from __future__ import annotations

import numpy as np
import pytest

from protgraph.data.node import node
from protgraph.errors import OptionError
from protgraph.featurize import featurize
from protgraph.structure import neighbors
from protgraph.structure.point import cb, sidechain_centroid

SYMMETRIC = ["radius", "delaunay", "complete", "peptide_bond", "covalent_bond", "disulfide"]


@pytest.mark.parametrize(("of", "points"), [("cb", cb), ("centroid", sidechain_centroid)])
def test_knn_and_radius_measure_between_the_points_asked_for(proteins, of, points):
    for residues in proteins[:4]:
        graph = featurize(residues, [node("knn", k=7, of=of)])
        assert graph.degree == 7
        assert set(map(tuple, graph.edge_index.T.tolist())) == set(
            map(tuple, neighbors.knn(points(residues), 7).T.tolist())
        )
        near = featurize(residues, [node("radius", radius=6.5, of=of)]).edge_index.numpy()
        assert set(map(tuple, near.T)) == set(map(tuple, neighbors.radius(points(residues), 6.5).T))


def test_of_node_and_of_any_atom_are_the_kinds_of_their_own_names(proteins):
    for one, other in (
        (node("knn", k=9), node("ca_knn", k=9)),
        (node("radius", radius=8.0), node("ca_radius", radius=8.0)),
        (node("radius", radius=4.5, of="any_atom"), node("contact", cutoff=4.5)),
    ):
        a, b = (featurize(proteins[1], [n]) for n in (one, other))
        assert np.array_equal(a.edge_index, b.edge_index)


@pytest.mark.parametrize("name", SYMMETRIC)
def test_symmetric_kinds_are_symmetric_and_ordered_as_all_are(proteins, name):
    for residues in proteins[:3]:
        index = featurize(residues, [name]).edge_index.numpy()
        assert set(map(tuple, index.T)) == set(map(tuple, index[::-1].T))
        assert np.array_equal(neighbors.resorted(residues.pos, index), index)


def test_complete_joins_everything(proteins):
    short = proteins[0].select(np.arange(len(proteins[0])) < 30)
    graph = featurize(short, ["complete"])
    assert graph.degree == 29 and graph.num_edges == 30 * 29


def test_delaunay_leaves_out_what_is_longer_than_its_cutoff(proteins):
    whole, cut = (featurize(proteins[0], [n, "edge_distance"]) for n in ("delaunay", node("delaunay", cutoff=9.0)))
    assert whole.edge_dist.max() > 9 and cut.edge_dist.max() <= 9
    assert cut.num_edges == int((whole.edge_dist <= 9).sum())


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("knn", {"k": 0}),
        ("knn", {"of": "ca"}),
        ("radius", {"radius": -1.0}),
        ("radius", {"of": "x"}),
        ("delaunay", {"cutoff": 0}),
        ("distant_knn", {"separation": 0}),
        ("distant_knn", {"k": 1.5}),
        ("random_long_range", {"k": 0}),
        ("random_long_range", {"exponent": float("nan")}),
        ("random_long_range", {"seed": -1}),
        ("disulfide", {"cutoff": 0}),
    ],
)
def test_odd_options_are_refused(proteins, name, options):
    with pytest.raises(OptionError, match=name):
        featurize(proteins[0], [node(name, **options)])
