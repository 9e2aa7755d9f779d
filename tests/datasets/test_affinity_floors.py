"""Floors and scores of ``affinity``: areas against a plain computation, scores against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from protgraph_datasets.affinity.floors import buried_area, complex_size, predict_by_line
from protgraph_datasets.affinity.scores import Complexes, floor_scores, prediction_scores

from protgraph.errors import LabelError, SelectionError
from protgraph.structure import Residues, clean, load_structure

RADII = {"C": 1.70, "N": 1.55, "O": 1.52, "S": 1.80, "P": 1.80, "F": 1.47, "CL": 1.75, "BR": 1.85, "I": 1.98}
MASSES = {"C": 12.011, "N": 14.007, "O": 15.999, "S": 32.06, "P": 30.974, "F": 18.998, "CL": 35.45}


@pytest.fixture(scope="module")
def entries(structures_dir) -> list[Residues]:
    """Return ten complexes, each with the residues within 8 Å of its largest molecule, which alone is its ligand."""
    complexes: list[Residues] = []
    for path in sorted(structures_dir.glob("*.bcif")):
        residues = clean(load_structure(path), ligands=True)
        ligands = residues.ligands
        sizes = np.bincount(ligands.atom_molecule, minlength=1)
        elements = set(ligands.atom_element[ligands.atom_molecule == sizes.argmax()].tolist())
        if not 8 <= sizes.max() <= 60 or not elements <= MASSES.keys():
            continue
        ligands = ligands.select(np.arange(len(ligands)) == sizes.argmax())
        gap = np.linalg.norm(residues.atom_pos[:, None] - ligands.atom_pos, axis=-1).min(1)
        near = np.zeros(len(residues), bool)
        near[residues.atom_residue[gap <= 8.0]] = True
        complexes.append(residues.select(near).copy_with(ligands=ligands))
        if len(complexes) == 10:
            return complexes
    raise AssertionError("fewer than ten complexes")


def area_by_points(pos: np.ndarray, radius: np.ndarray) -> float:
    """Count the points of a fine grid of each atom's sphere that are in no other sphere."""
    i = np.arange(2000) + 0.5
    polar, turn = np.arccos(1 - 2 * i / 2000), np.pi * (1 + 5**0.5) * i
    sphere = np.stack([np.cos(turn) * np.sin(polar), np.sin(turn) * np.sin(polar), np.cos(polar)], 1)
    reach = radius + 1.4
    total = 0.0
    for a in range(len(pos)):
        points = pos[a] + reach[a] * sphere
        near = np.flatnonzero(np.linalg.norm(pos - pos[a], axis=1) < reach + reach[a])
        near = near[near != a]
        inside = np.linalg.norm(points[:, None] - pos[near], axis=-1) < reach[near]
        total += 4 * np.pi * reach[a] ** 2 * (~inside.any(1)).mean()
    return total


def test_buried_area_equals_a_count_of_points_on_ten_complexes(entries):
    for residues in entries:
        ligands = residues.ligands
        parts = [(x.atom_pos.astype(float), np.array([RADII[e] for e in x.atom_element])) for x in (residues, ligands)]
        both = [np.concatenate(part) for part in zip(*parts, strict=True)]
        expected = sum(area_by_points(*part) for part in parts) - area_by_points(*both)
        assert expected > 100
        assert buried_area(residues, ligands) == pytest.approx(expected, rel=0.02), residues.name


def test_size_counts_heavy_atoms_and_their_masses(entries):
    for residues in entries:
        size = complex_size(residues)
        assert size.heavy_atoms == len(residues.ligands.atom_element)
        expected = sum(MASSES[element] for element in residues.ligands.atom_element.tolist())
        assert size.weight == pytest.approx(expected, abs=0.05)


def test_complex_without_a_ligand_is_refused(structures_dir):
    with pytest.raises(SelectionError, match="1crn"):
        complex_size(clean(load_structure(structures_dir / "1crn.bcif"), ligands=True))


def test_line_is_that_of_least_squares():
    x = np.array([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(predict_by_line(x, 2 * x + 1, np.array([10.0])), [21.0])


@pytest.fixture
def complexes() -> Complexes:
    rng = np.random.default_rng(0)
    pK = rng.normal(6, 2, 60)
    split = np.array(["train"] * 40 + ["test"] * 20)
    folds = {f"cold {k}": np.where(np.arange(60) % 5 == k, "test", "train") for k in range(5)}
    return Complexes([f"c{i}.bcif" for i in range(60)], pK, np.arange(60) // 3, {"core": split, **folds})


def test_scores_equal_closed_forms_and_intervals_contain_them(complexes):
    predicted = complexes.pK + np.random.default_rng(1).normal(0, 1, 60)
    table = dict(zip(complexes.files, predicted, strict=True))
    scores = prediction_scores("m", complexes, dict.fromkeys(complexes.splits, table))
    assert [score.test_set for score in scores] == ["core", *(f"cold {k}" for k in range(5)), "cold, all"]
    core, everything = scores[0], scores[-1]
    y, p = complexes.pK[40:], predicted[40:]
    assert core.pearson == pytest.approx(np.corrcoef(y, p)[0, 1])
    assert core.rmse == pytest.approx(np.sqrt(((y - p) ** 2).mean()))
    assert core.rmse_interval[0] < core.rmse < core.rmse_interval[1]
    assert everything.rmse == pytest.approx(np.sqrt(((complexes.pK - predicted) ** 2).mean()))
    assert (everything.complexes, everything.families) == (60, 20)


def test_floors_are_fitted_on_the_train_split_of_each_test_set(complexes):
    class Size:
        def __init__(self, pK: float) -> None:
            self.heavy_atoms, self.weight, self.buried_area = 10 * pK, 7.0 - pK, 1.0 + (pK > 6)

    scores = floor_scores(complexes, [Size(value) for value in complexes.pK])
    of_core = {score.method: score for score in scores if score.test_set == "core"}
    assert of_core["ligand heavy atoms"].rmse == pytest.approx(0, abs=1e-9)
    assert of_core["mean of train"].rmse == pytest.approx(
        np.sqrt(((complexes.pK[40:] - complexes.pK[:40].mean()) ** 2).mean())
    )
    assert np.isnan(of_core["mean of train"].pearson) and 0.5 < of_core["buried area"].pearson < 1


def test_missing_predictions_are_named(complexes):
    with pytest.raises(LabelError, match="c59"):
        prediction_scores("m", complexes, {"core": dict.fromkeys(complexes.files[:59], 6.0)})
