"""Long-range edges: numbers, symmetry, order and invalid options."""

from __future__ import annotations

import numpy as np
import pytest

from protgraph.featurize import build_graph
from protgraph.registry.component import component
from protgraph.structure.descriptors.backbone_geometry import cb_or_ca, sidechain_centroid
from protgraph.structure.neighbors import search as neighbors

SYMMETRIC = ["radius", "delaunay", "complete", "peptide_bond", "covalent_bond", "disulfide"]


@pytest.mark.parametrize(("of", "points"), [("cb", cb_or_ca), ("centroid", sidechain_centroid)])
def test_knn_and_radius_measure_between_the_selected_points(proteins, of, points):
    for residues in proteins[:4]:
        graph = build_graph(residues, [component("knn", k=7, of=of)])
        assert graph.degree == 7
        assert set(map(tuple, graph.edge_index.T.tolist())) == set(
            map(tuple, neighbors.knn(points(residues), 7).T.tolist())
        )
        near = build_graph(residues, [component("radius", radius=6.5, of=of)]).edge_index.numpy()
        assert set(map(tuple, near.T)) == set(map(tuple, neighbors.radius(points(residues), 6.5).T))


def test_any_atom_within_a_radius_is_a_contact(proteins):
    near, contact = (
        build_graph(proteins[1], [n])
        for n in (component("radius", radius=4.5, of="any_atom"), component("contact", cutoff=4.5))
    )
    assert np.array_equal(near.edge_index, contact.edge_index)


@pytest.mark.parametrize("of", ["node", "cb", "any_atom"])
def test_a_separation_removes_close_positions(proteins, of):
    for name in ("knn", "radius"):
        every = build_graph(proteins[1], [component(name, of=of)])
        apart = build_graph(proteins[1], [component(name, of=of, separation=4)])
        (i, j), chain, place = every.edge_index, every.chain, every.seq_pos
        far = (chain[i] != chain[j]) | ((place[i] - place[j]).abs() >= 4)
        assert 0 < far.sum() < len(far)
        assert np.array_equal(apart.edge_index, every.edge_index[:, far])


@pytest.mark.parametrize("name", SYMMETRIC)
def test_symmetric_kinds_are_symmetric_and_sorted(proteins, name):
    for residues in proteins[:3]:
        index = build_graph(residues, [name]).edge_index.numpy()
        assert set(map(tuple, index.T)) == set(map(tuple, index[::-1].T))
        assert np.array_equal(neighbors.sort_edges(residues.pos, index), index)


def test_complete_joins_all_pairs(proteins):
    short = proteins[0].select(np.arange(len(proteins[0])) < 30)
    graph = build_graph(short, ["complete"])
    assert graph.degree == 29 and graph.num_edges == 30 * 29


def test_delaunay_removes_edges_longer_than_the_cutoff(proteins):
    whole, cut = (
        build_graph(proteins[0], [n, "edge_distance"]) for n in ("delaunay", component("delaunay", cutoff=9.0))
    )
    assert whole.edge_dist.max() > 9 and cut.edge_dist.max() <= 9
    assert cut.num_edges == int((whole.edge_dist <= 9).sum())
