"""Nearest residues by atoms or with a sequence separation, against all pairs."""

from __future__ import annotations

import numpy as np
import pytest

from protgraph.structure import Residues, clean, load_structure
from protgraph.structure.neighbors.atom_distance import distant_knn, knn_by_atoms
from protgraph.structure.vectors import squared


@pytest.fixture(scope="module")
def proteins(structures_dir) -> list[Residues]:
    return [clean(load_structure(path)) for path in sorted(structures_dir.glob("*.bcif"))[3::90]]


def between_atoms(residues: Residues) -> np.ndarray:
    """Return squared distances of the closest atoms ``(N, N)``, infinite on the diagonal."""
    atoms = residues.atom_pos.astype(np.float64)
    d2 = np.stack([
        np.minimum.reduceat(squared(atoms[own] - atoms[:, None]).min(1), residues.atom_ptr[:-1])
        for own in np.split(np.arange(len(atoms)), residues.atom_ptr[1:-1])
    ])  # fmt: skip
    np.fill_diagonal(d2, np.inf)
    return d2


def between_ca(residues: Residues) -> np.ndarray:
    pos = residues.pos.astype(np.float64)
    d2 = squared(pos[:, None] - pos)
    np.fill_diagonal(d2, np.inf)
    return d2


def chosen(d2: np.ndarray, k: int) -> set[tuple[int, int]]:
    order = np.argsort(d2, axis=1, kind="stable")[:, :k]
    return {(int(j), i) for i, row in enumerate(order) for j in row if d2[i, j] < np.inf}


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 16, 60])
def test_knn_by_atoms_equals_brute_force(proteins, k):
    for residues in proteins:
        result = knn_by_atoms(residues.pos, residues.atom_pos, residues.atom_residue, k)
        assert result.shape[1] == len(residues) * min(k, len(residues) - 1)
        assert set(map(tuple, result.T.tolist())) == chosen(between_atoms(residues), k), residues.name


@pytest.mark.parametrize("reach", [0.1, 3.0, 30.0])
def test_the_initial_radius_does_not_change_the_edges(proteins, reach):
    r = proteins[0]
    there = knn_by_atoms(r.pos, r.atom_pos, r.atom_residue, 9, reach=reach)
    assert np.array_equal(there, knn_by_atoms(r.pos, r.atom_pos, r.atom_residue, 9))


def test_ties_of_coincident_atoms_go_to_the_lower_indices():
    result = knn_by_atoms(np.zeros((4, 3)), np.zeros((8, 3)), np.repeat(np.arange(4), 2), 2)
    assert result.tolist() == [[1, 2, 0, 2, 0, 1, 0, 1], [0, 0, 1, 1, 2, 2, 3, 3]]


@pytest.mark.parametrize(("k", "separation"), [(1, 1), (8, 6), (150, 3), (12, 1000)])
def test_distant_knn_equals_brute_force(proteins, k, separation):
    for residues in proteins:
        d2, chain, at = between_ca(residues), residues.chain_number, residues.seq_pos
        d2[(chain[:, None] == chain) & (abs(at[:, None] - at) < separation)] = np.inf
        result = distant_knn(residues, k, separation)
        assert set(map(tuple, result.T.tolist())) == chosen(d2, k), residues.name
