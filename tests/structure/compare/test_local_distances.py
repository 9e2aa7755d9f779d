"""lDDT against its definition in dense matrices, and against biotite; equivalent atoms."""

from __future__ import annotations

import numpy as np
import pytest
from biotite.structure import AtomArray, lddt

from protgraph.errors import OptionError
from protgraph.structure import Residues, clean, load_structure
from protgraph.structure.compare import compute_lddt
from protgraph.structure.compare.local_distances import LDDT_THRESHOLDS


@pytest.fixture(scope="module")
def native(structures_dir) -> Residues:
    return clean(load_structure(structures_dir / "1crn.bcif"))


def noised(points: np.ndarray, sigma: float) -> np.ndarray:
    return points + np.random.default_rng(0).normal(scale=sigma, size=points.shape)


def dense_lddt(model: np.ndarray, reference: np.ndarray, residue: np.ndarray) -> tuple[np.ndarray, float]:
    """Return lDDT per residue and of all distances from complete distance matrices."""
    true, found = (np.linalg.norm(x[:, None] - x[None], axis=-1) for x in (reference, model))
    near = (true <= 15) & (residue[:, None] != residue)
    kept = np.mean([np.abs(true - found) <= t for t in LDDT_THRESHOLDS], axis=0) * near
    rows = [residue == r for r in range(residue.max() + 1)]
    return np.array([kept[r].sum() / near[r].sum() for r in rows]), float(kept.sum() / near.sum())


@pytest.mark.parametrize("sigma", [0.0, 0.6, 3.0])
@pytest.mark.parametrize("atoms", ["ca", "all"])
def test_lddt_is_that_of_the_definition(native, sigma, atoms):
    reference = (native.pos if atoms == "ca" else native.atom_pos).astype(np.float64)
    residue = np.arange(len(native)) if atoms == "ca" else native.atom_residue
    model = noised(reference, sigma)
    model[::7] = np.nan if sigma == 3 else model[::7]  # atoms that the model lacks
    with np.errstate(invalid="ignore"):
        expected, whole = dense_lddt(model, reference, residue)
    found = compute_lddt(model, reference, residue=residue)
    np.testing.assert_allclose(found.residue, expected, atol=1e-12)
    assert found.score == pytest.approx(whole, abs=1e-12) and (found.score == 1) == (sigma == 0)


def test_lddt_is_that_of_biotite(native):
    array = AtomArray(len(native.atom_pos))
    array.coord, array.res_id = native.atom_pos, native.atom_residue
    moved = array.copy()
    moved.coord = noised(native.atom_pos, 1.0).astype(np.float32)
    found = compute_lddt(moved.coord, array.coord, residue=native.atom_residue)
    assert found.score == pytest.approx(float(lddt(array, moved)), abs=2e-5)
    np.testing.assert_allclose(found.residue, lddt(array, moved, aggregation="residue"), atol=2e-3)


def test_blocks_of_atoms_change_nothing(native, monkeypatch):
    model = noised(native.atom_pos, 1.0)
    whole = compute_lddt(model, native.atom_pos, residue=native.atom_residue)
    monkeypatch.setattr("protgraph.structure.compare.local_distances._BLOCK", 17)
    parts = compute_lddt(model, native.atom_pos, residue=native.atom_residue)
    np.testing.assert_allclose(parts.residue, whole.residue, atol=1e-12)


def test_exchanged_names_of_equivalent_atoms_do_not_matter():
    """Two residues of two equivalent atoms near a residue of unique ones; the names of the first are exchanged."""
    reference = np.array([[0, 0, 0], [0, 3.0, 0], [5, 0, 0], [5, 3, 0], [0, -2, 0], [5, -3, 1.0], [9, 0, 2]])
    residue = np.array([0, 0, 1, 1, 2, 2, 2])
    equivalent = np.array([1, 0, 3, 2, 4, 5, 6])
    model = reference[[1, 0, 2, 3, 4, 5, 6]]
    assert compute_lddt(model, reference, residue=residue).score < 0.9
    assert compute_lddt(model, reference, residue=residue, equivalent=equivalent).score == 1
    assert compute_lddt(reference, reference, residue=residue, equivalent=equivalent).score == 1


def test_a_residue_far_from_all_others_has_no_score():
    points = np.array([[0.0, 0, 0], [4, 0, 0], [100, 0, 0]])
    found = compute_lddt(points, points)
    assert np.isnan(found.residue).tolist() == [False, False, True] and found.distances.tolist() == [1, 1, 0]
    assert np.isnan(compute_lddt(points[2:], points[2:]).score)


def test_a_reference_with_unknown_positions_is_refused():
    with pytest.raises(OptionError, match="reference"):
        compute_lddt(np.zeros((2, 3)), np.array([[0, 0, 0], [np.nan, 0, 0]]))
    with pytest.raises(OptionError, match="shapes"):
        compute_lddt(np.zeros((2, 3)), np.zeros((3, 3)))
