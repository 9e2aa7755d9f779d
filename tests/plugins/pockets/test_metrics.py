"""Metrics of pockets, against closed forms and slow loops."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from protgraph_plugins.pockets.metrics import (
    dca,
    dcc,
    dvo,
    found_by_top_n,
    jaccard,
    recall_of_ranking,
    relative_overlap,
    voxels_of_points,
    voxels_of_spheres,
)

from protgraph.errors import OptionError

RNG = np.random.default_rng(0)


def test_dca_and_dcc_of_a_line_of_atoms():
    ligand = np.array([[0.0, 0, 0], [2, 0, 0], [4, 0, 0]])  # mean (2, 0, 0)
    centers = np.array([[2.0, 3, 0], [7, 0, 0], [4, 0, 0]])
    assert dca(centers, [ligand])[:, 0].tolist() == [3.0, 3.0, 0.0]
    assert dcc(centers, [ligand])[:, 0].tolist() == [3.0, 5.0, 2.0]


def test_dca_and_dcc_are_those_of_a_loop():
    centers, ligands = RNG.normal(size=(5, 3)), [RNG.normal(size=(n, 3)) for n in (1, 7, 20)]
    for p, center in enumerate(centers):
        for column, ligand in enumerate(ligands):
            distances = [float(np.sqrt(((center - atom) ** 2).sum())) for atom in ligand]
            assert dca(centers, ligands)[p, column] == pytest.approx(min(distances), rel=1e-12)
            mean = sum(ligand) / len(ligand)
            assert dcc(centers, ligands)[p, column] == pytest.approx(float(np.linalg.norm(center - mean)), rel=1e-12)
    assert dca(np.zeros((0, 3)), ligands).shape == dcc(np.zeros((0, 3)), ligands).shape == (0, 3)


def test_top_n_has_as_many_pockets_as_ligands():
    distances = np.array([[9.0, 9.0], [9.0, 3.9], [4.0, 9.0], [1.0, 1.0]])  # four pockets, two ligands
    assert found_by_top_n(distances).tolist() == [False, True]
    assert found_by_top_n(distances, extra=2).tolist() == [True, True]
    assert found_by_top_n(distances, extra=1, cutoff=3.95).tolist() == [False, True]
    assert found_by_top_n(np.zeros((0, 2))).tolist() == [False, False]
    assert found_by_top_n(np.array([[1.0, 2.0]])).tolist() == [True, True]  # one pocket finds both


def test_overlap_is_that_of_sets():
    pockets, sites = RNG.random((4, 30)) < 0.3, RNG.random((3, 30)) < 0.2
    pockets[0], sites[0] = False, False
    for p, pocket in enumerate(pockets):
        for column, site in enumerate(sites):
            a, b = set(np.flatnonzero(pocket).tolist()), set(np.flatnonzero(site).tolist())
            assert jaccard(pockets, sites)[p, column] == (len(a & b) / len(a | b) if a | b else 0)
            assert relative_overlap(pockets, sites)[p, column] == (len(a & b) / len(b) if b else 0)


def test_overlap_of_other_residues_is_an_error():
    with pytest.raises(OptionError, match="30"):
        jaccard(np.zeros((1, 30), bool), np.zeros((1, 29), bool))


def test_recall_of_a_ranking_is_that_of_a_loop():
    sizes = [(3, 1), (0, 2), (4, 2), (2, 0), (5, 3)]  # pockets and ligands of each protein
    scores = [RNG.random(p) for p, _ in sizes]
    distances = [RNG.uniform(0, 8, size) for size in sizes]
    curve = recall_of_ranking(scores, distances)

    ranked = sorted(((-s, i, p) for i, of in enumerate(scores) for p, s in enumerate(of.tolist())))
    found: set[tuple[int, int]] = set()
    false = 0
    for k, (_, protein, pocket) in enumerate(ranked):
        hits = [(protein, j) for j, d in enumerate(distances[protein][pocket].tolist()) if d <= 4.0]
        found.update(hits)
        false += not hits
        assert curve.recall[k] == len(found) / 8 and curve.false_positives[k] == false
    assert len(curve.recall) == len(ranked) == 14 and 0 < curve.recall[-1] < 1


def test_scores_of_other_pockets_are_an_error():
    with pytest.raises(OptionError, match="protein 1"):
        recall_of_ranking([np.zeros(1), np.zeros(2)], [np.zeros((1, 1)), np.zeros((1, 1))])


def test_volume_overlap_equals_that_of_a_loop():
    """Cells of 1 Å in spheres, one by one."""
    generator = np.random.default_rng(0)
    pocket = generator.normal(0, 3, (5, 3)), generator.uniform(3, 5, 5)
    ligand = generator.normal(1, 2, (6, 3)), np.full(6, 1.7)
    common = either = 0
    for cell in itertools.product(range(-20, 21), repeat=3):
        in_pocket = any(math.dist(cell, center) <= radius - 1.7 for center, radius in zip(*pocket, strict=True))
        in_ligand = any(math.dist(cell, center) <= radius for center, radius in zip(*ligand, strict=True))
        common += in_pocket and in_ligand
        either += in_pocket or in_ligand
    cells = voxels_of_spheres(*pocket), voxels_of_spheres(*ligand, around=0.0)
    assert 0 < common < either
    assert dvo(cells[:1], cells[1:]).tolist() == [[common / either]]
    assert dvo([cells[0], cells[0][:0]], [cells[0], cells[0][:0]]).tolist() == [[1, 0], [0, 0]]


def test_points_of_a_fine_grid_fill_cells():
    points = np.array([[0.0, 0.0, 0.0], [0.3, 0.3, 0.0], [0.6, 0.0, 0.0], [-0.6, 0.0, 0.0]])
    assert voxels_of_points(points).tolist() == [[-1, 0, 0], [0, 0, 0], [1, 0, 0]]


def test_the_recall_of_no_protein_is_empty():
    curve = recall_of_ranking([], [])
    assert curve.recall.shape == (0,) and curve.false_positives.shape == (0,)
