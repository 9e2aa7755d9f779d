"""Surface areas against closed forms of spheres, biotite and FreeSASA."""

from __future__ import annotations

from dataclasses import replace

import biotite.structure as struc
import numpy as np
import pytest
from biotite.structure import info
from scipy.spatial.transform import Rotation

from protgraph.structure import ALPHABET, Residues, clean, load_structure, to_atom_array
from protgraph.structure.descriptors import sasa as surface
from protgraph.structure.descriptors.sasa import MAX_SASA, PROBE, atom_sasa, protor_radii, residue_sasa
from protgraph.structure.residues.alphabet import THREE_LETTER, UNKNOWN


@pytest.fixture(scope="module")
def proteins(structures_dir) -> list[Residues]:
    return [clean(load_structure(path)) for path in sorted(structures_dir.glob("*.bcif"))[::5][:52]]


def atoms_at(residues: Residues, pos: list[list[float]] | np.ndarray) -> Residues:
    """Return the first residue with this number of CB atoms and no other atoms."""
    one, n = residues.select(np.arange(len(residues)) == 0), len(pos)
    names = {"atom_name": np.full(n, "CB"), "atom_element": np.full(n, "C"), "atom_residue": np.zeros(n, int)}
    return replace(one, aatype=np.array([0]), atom_pos=np.array(pos, np.float32), **names)


def test_spheres_have_the_area_of_spheres(proteins):
    reach = 1.88 + PROBE
    alone = atom_sasa(atoms_at(proteins[0], [[5, 5, 5]]))
    assert alone == pytest.approx(4 * np.pi * reach**2)
    for d in (1.5, 3.0, 5.0):
        cap = 2 * np.pi * reach * (reach - d / 2)  # of each sphere inside the other
        assert atom_sasa(atoms_at(proteins[0], [[0, 0, 0], [0, 0, d]]), points=5000) == pytest.approx(
            [4 * np.pi * reach**2 - cap] * 2, rel=1e-3
        )
    assert len(atom_sasa(atoms_at(proteins[0], np.zeros((0, 3))))) == 0


@pytest.mark.slow
def test_areas_equal_biotite(proteins):
    for residues in proteins[1:3]:
        area = struc.sasa(
            to_atom_array(residues), vdw_radii=protor_radii(residues), point_number=5000, ignore_ions=False
        )
        theirs = np.bincount(residues.atom_residue, area, len(residues))
        error = residue_sasa(residues) - theirs
        assert np.sqrt((error**2).mean()) < 0.6 and np.abs(error).max() < 4, residues.name
        assert residue_sasa(residues).sum() == pytest.approx(theirs.sum(), rel=0.003)


def test_some_residues_have_the_areas_of_all(proteins):
    for residues in (proteins[3], proteins[4].read_only()):
        only = np.arange(len(residues)) % 3 == 0
        area, every = (residue_sasa(residues, points=100, only=which) for which in (only, None))
        assert np.array_equal(area[only], every[only]) and np.isnan(area[~only]).all()


def test_areas_of_read_only_residues_are_computed_once(proteins, monkeypatch):
    calls = []
    monkeypatch.setattr(surface, "sasa", lambda *args, **kwargs: calls.append(1) or struc.sasa(*args, **kwargs))
    residues, expected = proteins[0], atom_sasa(proteins[0], points=50)
    fixed, calls[:] = residues.read_only(), []
    for _ in range(2):
        area = atom_sasa(fixed, points=50)
        assert np.array_equal(area, expected)
        area[:] = 0  # a copy
    assert len(calls) == 1
    assert not np.array_equal(atom_sasa(fixed, points=60), expected) and len(calls) == 2
    assert not np.array_equal(atom_sasa(fixed, points=50, probe=1.0), expected) and len(calls) == 3


def test_areas_of_changed_residues_are_computed_again(proteins):
    residues = proteins[0].select(np.ones(len(proteins[0]), bool))
    before = atom_sasa(residues, points=50)
    residues.atom_pos[:] *= 2
    assert atom_sasa(residues, points=50).sum() > 1.5 * before.sum()


def test_areas_are_rotation_invariant(proteins):
    for residues in proteins[1:3]:
        before = residue_sasa(residues)
        for sign in (1, -1):
            q = sign * Rotation.random(random_state=3).as_matrix()
            after = residue_sasa(replace(residues, atom_pos=residues.atom_pos.astype(float) @ q))
            assert np.abs(after - before).max() < 0.5, residues.name  # one or two points of 1000, rounded to float32


def test_radii_equal_the_protor_radii_of_biotite(proteins):
    seen = {}
    for residues in proteins:
        names = residues.res_name[residues.atom_residue].tolist()
        seen |= dict(zip(zip(names, residues.atom_name.tolist(), strict=True), protor_radii(residues), strict=True))
    standard = {pair: radius for pair, radius in seen.items() if pair[0] in THREE_LETTER[:UNKNOWN]}
    assert len(standard) >= 167  # every heavy atom of the twenty
    assert standard == {pair: info.vdw_radius_protor(*pair) for pair in standard}


def test_atoms_of_unknown_names_have_the_radius_of_their_element(proteins):
    one = atoms_at(proteins[0], [[0, 0, 0]] * 3)
    odd = replace(one, atom_name=np.array(["SE", "P", "XX"]), atom_element=np.array(["SE", "P", "ZN"]))
    assert protor_radii(odd).tolist() == [1.90, 1.80, 1.80]


def test_areas_are_below_the_largest_ones(proteins):
    relative = np.concatenate([residue_sasa(r) / MAX_SASA[r.aatype] for r in proteins[:5]])
    assert relative.min() >= 0 and (relative > 1).mean() < 0.005
    assert MAX_SASA[ALPHABET.index("W")] == 285 and MAX_SASA[ALPHABET.index("G")] == 104


@pytest.mark.slow
def test_agreement_with_freesasa(proteins, capsys):
    freesasa = pytest.importorskip("freesasa", reason="pip install freesasa")
    ours, theirs = [], []
    for residues in proteins:
        radii, options = (
            protor_radii(residues),
            freesasa.Parameters({"algorithm": freesasa.LeeRichards, "n-slices": 100}),
        )
        result = freesasa.calcCoord(residues.atom_pos.astype(float).ravel(), radii, options)
        area = np.array([result.atomArea(a) for a in range(len(radii))])
        theirs.append(np.bincount(residues.atom_residue, area, len(residues)))
        ours.append(residue_sasa(residues))
    ours, theirs = np.concatenate(ours), np.concatenate(theirs)
    error = ours - theirs
    with capsys.disabled():
        print(f"\n{len(proteins)} entries, {len(ours)} residues; FreeSASA by Lee & Richards, 100 slices per atom")
        print(f"difference: {np.sqrt((error**2).mean()):.2f} Å² rms, {np.abs(error).max():.2f} at most")
        print(f"correlation {np.corrcoef(ours, theirs)[0, 1]:.6f}; sums {ours.sum():.0f} and {theirs.sum():.0f} Å²")
    assert np.sqrt((error**2).mean()) < 0.6
    assert np.corrcoef(ours, theirs)[0, 1] > 0.9999
