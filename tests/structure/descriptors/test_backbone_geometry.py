"""Backbone geometry against biotite, closed forms and real side chains."""

from __future__ import annotations

from dataclasses import replace

import biotite
import biotite.structure as struc
import numpy as np
import pytest

from protgraph.structure import Residues, clean, load_structure
from protgraph.structure.descriptors import backbone_geometry as geometry
from protgraph.structure.descriptors.backbone_geometry import cb_or_ca, sidechain_centroid, virtual_cb
from protgraph.structure.residues.chain_breaks import linked_to_next


@pytest.fixture(scope="module")
def proteins(structures_dir) -> list[Residues]:
    """Return every seventh of the committed entries: 36 proteins."""
    return [clean(load_structure(path)) for path in sorted(structures_dir.glob("*.bcif"))[::7][:36]]


@pytest.fixture(scope="module")
def unbroken(proteins) -> Residues:
    """Return a protein of one chain with a complete backbone and no gaps."""
    whole = [r for r in proteins if linked_to_next(r)[:-1].all() and r.backbone_mask.all()]
    return min(whole, key=len)


def backbone_atoms(residues: Residues) -> struc.AtomArray:
    """Return N, CA, C of each residue as an ``AtomArray``, missing atoms left out."""
    there = ~np.isnan(residues.backbone[:, :3]).any(-1)
    row, column = np.nonzero(there)
    atoms = struc.AtomArray(len(row))
    atoms.coord = residues.backbone[row, column]
    atoms.atom_name = np.array(["N", "CA", "C"])[column]
    atoms.res_id = row  # one number per residue, independent of the author's numbering
    atoms.res_name = np.full(len(row), "ALA")
    return atoms


def turn_between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.abs((a - b + np.pi) % (2 * np.pi) - np.pi)


def test_dihedrals_equal_biotite(proteins):
    compared = 0
    for residues in proteins:
        ours = geometry.backbone_dihedrals(residues)
        theirs = np.stack(struc.dihedral_backbone(backbone_atoms(residues)), 1)  # ignores chain ends and gaps
        linked = linked_to_next(residues)
        after = np.r_[False, linked[:-1]]
        theirs[~after, 0], theirs[~linked, 1:] = np.nan, np.nan
        assert not (np.isnan(ours) & ~np.isnan(theirs)).any(), residues.name
        strained = (~np.isnan(ours) & np.isnan(theirs)).sum()  # biotite 2 also leaves out bonds of unusual length
        assert strained <= (9 if biotite.__version__ >= "2" else 0), residues.name
        assert np.nanmax(turn_between(ours, theirs)) < 1e-4, residues.name  # biotite computes in float32
        compared += np.isfinite(ours).sum()
    assert compared > 10_000


@pytest.mark.parametrize("angle", [-3.0, -1.2, -1e-3, 0.0, 1e-3, 0.7, 2.9, np.pi])
def test_dihedral_of_a_constructed_rotation(angle):
    # looking along b → c (the z axis, away from us), a positive angle turns clockwise
    a, b, c = np.array([1.0, 0, 0]), np.zeros(3), np.array([0, 0, 2.0])
    d = c + np.array([np.cos(angle), np.sin(angle), 0.3])
    assert geometry.dihedral_angle(a, b, c, d) == pytest.approx(angle, abs=1e-12)


def test_dihedrals_along_the_chain_equal_those_of_single_quadruples(proteins):
    """Shared bonds and normals give the same angles; so do straight, coincident and missing atoms."""
    rng = np.random.default_rng(0)
    odd = rng.normal(size=(40, 3))
    odd[5], odd[10:13] = np.nan, np.arange(3)[:, None]  # a missing atom; three on a line
    odd[20] = odd[21]
    for atoms in (odd, odd[:3], odd[:4], *(r.backbone[:, :3].reshape(-1, 3).astype(np.float64) for r in proteins)):
        expected = geometry.dihedral_angle(atoms[:-3], atoms[1:-2], atoms[2:-1], atoms[3:])
        result = geometry._consecutive_dihedrals(atoms)
        assert np.array_equal(np.isnan(result), np.isnan(expected))
        assert np.nanmax(np.abs(result - expected), initial=0) < 1e-12


def test_right_handed_helices_have_negative_phi_and_psi(proteins):
    phi, psi, omega = np.concatenate([geometry.backbone_dihedrals(r) for r in proteins]).T
    helical = (np.abs(np.degrees(phi) + 63) < 20) & (np.abs(np.degrees(psi) + 42) < 20)
    assert np.nanmean(helical) > 0.2
    assert np.nanmean(np.abs(omega) > np.radians(150)) > 0.98  # trans


def test_dihedral_without_a_plane_is_undefined():
    line = np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [2, 1, 0]])
    assert np.isnan(geometry.dihedral_angle(*line))
    assert np.isnan(geometry.dihedral_angle(*np.zeros((4, 3))))
    turned = line @ np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0] + 40.0
    assert np.isnan(geometry.dihedral_angle(*turned.astype(np.float32)))


def test_dihedrals_change_sign_under_reflection_only(unbroken):
    angles = geometry.backbone_dihedrals(unbroken)
    rotation = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]
    for sign in (1, -1):
        q = rotation * (sign * np.linalg.det(rotation))
        backbone, pos = (x.astype(np.float64) @ q for x in (unbroken.backbone, unbroken.pos))
        moved = replace(unbroken, backbone=backbone, pos=pos)
        assert np.nanmax(turn_between(geometry.backbone_dihedrals(moved), sign * angles)) < 1e-9


def test_angles_are_undefined_at_both_ends_of_a_chain(unbroken):
    undefined = np.isnan(geometry.backbone_dihedrals(unbroken))
    assert undefined[0].tolist() == [True, False, False]
    assert undefined[-1].tolist() == [False, True, True]
    assert not undefined[1:-1].any()


def test_angles_are_undefined_beside_a_gap(unbroken):
    backbone, pos = unbroken.backbone.copy(), unbroken.pos.copy()
    backbone[10:] += 5.0
    pos[10:] += 5.0
    broken = replace(unbroken, backbone=backbone, pos=pos)
    assert np.flatnonzero(~linked_to_next(broken)).tolist() == [9, len(pos) - 1]
    undefined = np.isnan(geometry.backbone_dihedrals(broken))
    assert undefined[9].tolist() == [False, True, True]
    assert undefined[10].tolist() == [True, False, False]
    assert undefined.sum() == 6


def test_a_ca_trace_has_no_dihedrals(unbroken):
    backbone = unbroken.backbone.copy()
    backbone[:, [0, 2, 3]] = np.nan
    assert np.isnan(geometry.backbone_dihedrals(replace(unbroken, backbone=backbone))).all()


def test_virtual_cb_is_close_to_the_real_one(proteins):
    misses = []
    for residues in proteins:
        is_cb = residues.atom_name == "CB"
        owner = residues.atom_residue[is_cb]
        misses.append(np.linalg.norm(geometry.virtual_cb(residues.backbone)[owner] - residues.atom_pos[is_cb], axis=1))
    miss = np.concatenate(misses)
    assert len(miss) > 5000
    assert np.nanmedian(miss) < 0.1
    assert np.nanmean(miss < 0.3) > 0.98


# --- one point per residue -------------------------------------------------------------------------------------------


def test_points_equal_a_loop_over_residues(structures_dir):
    for path in sorted(structures_dir.glob("*.bcif"))[::40]:
        residues = clean(load_structure(path))
        virtual, result, center = virtual_cb(residues.backbone), cb_or_ca(residues), sidechain_centroid(residues)
        for i in range(len(residues)):
            own = residues.atom_residue == i
            names, atoms = residues.atom_name[own], residues.atom_pos[own].astype(np.float64)
            expected = atoms[names == "CB"][0] if "CB" in names else virtual[i]
            expected = residues.pos[i] if np.isnan(expected).any() else expected
            assert np.allclose(result[i], expected, atol=1e-9)
            side = atoms[~np.isin(names, ["N", "CA", "C", "O", "OXT"])]
            assert np.allclose(center[i], side.mean(0) if len(side) else residues.pos[i], atol=1e-9)


def test_a_ca_trace_has_ca_for_all_points(structures_dir):
    residues = clean(load_structure(next(structures_dir.glob("*.bcif"))))
    trace = residues.select(np.arange(len(residues)) < 20).hide("sidechain")
    trace.backbone[:, [0, 2, 3]] = np.nan
    assert np.array_equal(cb_or_ca(trace), trace.pos) and np.array_equal(sidechain_centroid(trace), trace.pos)
