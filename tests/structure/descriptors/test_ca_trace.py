"""CA trace descriptors against closed forms of an ideal helix, biotite, and loops."""

from __future__ import annotations

from dataclasses import replace

import biotite.structure as struc
import numpy as np
import pytest

from protgraph.structure import Residues, clean, load_structure, to_atom_array
from protgraph.structure.descriptors.ca_trace import p_sea, sidechain_direction, trace_angles
from protgraph.structure.descriptors.dssp import dssp, three_states
from protgraph.structure.residues.chain_breaks import linked_to_next


@pytest.fixture(scope="module")
def proteins(structures_dir) -> list[Residues]:
    return [clean(load_structure(path)) for path in sorted(structures_dir.glob("*.bcif"))[::5][:52]]


def trace(ca: np.ndarray, residues: Residues) -> Residues:
    """Return a CA trace with one residue per point."""
    some = residues.select(np.arange(len(residues)) < len(ca))
    backbone = np.full((len(ca), 4, 3), np.nan)
    backbone[:, 1] = ca
    return replace(some, pos=ca, backbone=backbone, chain=np.full(len(ca), "A"))


def test_angles_of_an_ideal_helix(proteins):
    radius, rise, turn = 2.3, 1.5, np.radians(100)  # α-helix, CA: Å, Å, radians per residue
    k = np.arange(12)
    ca = np.stack([radius * np.cos(k * turn), radius * np.sin(k * turn), rise * k], 1)
    angles = trace_angles(trace(ca, proteins[0]))
    chord = 4 * radius**2 * np.sin(turn) ** 2  # of two residues, squared, without the rise
    cos_kappa = (chord * np.cos(2 * turn) + 4 * rise**2) / (chord + 4 * rise**2)
    assert np.allclose(np.cos(angles[2:-2, 0]), cos_kappa)
    assert np.allclose(np.degrees(angles[1:-2, 1]), 50.1, atol=0.1)
    assert np.isnan(angles[[0, 1, -2, -1], 0]).all() and np.isnan(angles[[0, -2, -1], 1]).all()


def test_alpha_equals_biotite_and_gaps_have_no_angles(proteins):
    for residues in proteins:
        linked, ca = linked_to_next(residues), residues.pos
        ours, n = trace_angles(residues), len(residues)
        theirs = struc.dihedral(ca[:-3], ca[1:-2], ca[2:-1], ca[3:])
        whole = linked[: n - 3] & linked[1 : n - 2] & linked[2 : n - 1]
        assert (np.isfinite(ours[1:-2, 1]) == whole).all()
        turn = np.abs((ours[1:-2, 1] - theirs + np.pi) % (2 * np.pi) - np.pi)[whole]
        assert turn.max(initial=0) < 1e-4
        whole &= np.concatenate([linked[3 : n - 1], [False]])
        assert (np.isfinite(ours[2:-2, 0]) == whole[:-1]).all()


def test_sidechain_direction_equals_loops(proteins):
    for residues in proteins[:5]:
        linked, ca, result = linked_to_next(residues), residues.pos.astype(float), sidechain_direction(residues)
        for i in range(len(residues)):
            expected = np.zeros(3)
            if 0 < i < len(residues) - 1 and linked[i - 1] and linked[i]:
                a, b = ca[i] - ca[i - 1], ca[i] - ca[i + 1]
                expected = a / np.linalg.norm(a) + b / np.linalg.norm(b)
                expected /= np.linalg.norm(expected)
            assert np.allclose(result[i], expected)


def test_p_sea_equals_biotite_on_unbroken_chains(proteins):
    compared = 0
    for residues in proteins:
        if len(residues.chain_names) > 1 or not linked_to_next(residues)[:-1].all():
            continue
        atoms = to_atom_array(replace(residues, res_name=np.full(len(residues), "ALA")))
        atoms.res_id = residues.atom_residue
        theirs = struc.annotate_sse(atoms)
        letters = theirs if theirs.dtype.kind == "U" else np.array(["c", "a", "b"])[theirs]  # biotite 1; 2
        assert (np.array(["a", "b", "c"])[p_sea(residues)] == letters).all()
        compared += 1
    assert compared >= 5


def test_p_sea_agrees_with_dssp_on_most_residues_only(proteins):
    same = total = 0
    for residues in proteins:
        theirs = three_states(dssp(residues))
        known = theirs != "-"
        same += (np.array(list("HEC"))[p_sea(residues)] == theirs)[known].sum()
        total += known.sum()
    assert 0.75 < same / total < 0.85


def test_short_chains_and_coincident_atoms_have_no_angles(proteins):
    for n in range(1, 6):
        few = proteins[0].select(np.arange(len(proteins[0])) < n)
        assert trace_angles(few).shape == (n, 2) and sidechain_direction(few).shape == (n, 3)
        assert p_sea(few).tolist() == [2] * n
    point = replace(proteins[0], pos=np.ones_like(proteins[0].pos))
    assert np.isnan(trace_angles(point)).all() and not sidechain_direction(point).any()
