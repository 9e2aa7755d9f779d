"""Amide hydrogens and their bonds against closed forms and loops over all pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from protgraph.structure import Residues, clean, load_structure
from protgraph.structure.chemistry.dssp_hbond import amide_hydrogen, backbone_hbonds
from protgraph.structure.residues.chain_breaks import linked_to_next


@pytest.fixture(scope="module")
def crambin(structures_dir) -> Residues:
    return clean(load_structure(structures_dir / "1crn.bcif"))


def bonds_one_by_one(residues: Residues) -> dict[tuple[int, int], float]:
    """Return every bond by the formula, in loops."""
    x, linked = residues.backbone.astype(float), linked_to_next(residues)
    result = {}
    for i in range(len(residues)):
        if i == 0 or not linked[i - 1] or residues.sequence[i] == "P":
            continue
        co = x[i - 1, 2] - x[i - 1, 3]
        n, h = x[i, 0], x[i, 0] + co / np.sqrt(co @ co)
        for j in range(len(residues)):
            if j in (i, i - 1) or np.linalg.norm(x[i, 1] - x[j, 1]) >= 9:
                continue
            c, o = x[j, 2], x[j, 3]
            on, ch, oh, cn = (np.linalg.norm(a - b) for a, b in ((o, n), (c, h), (o, h), (c, n)))
            energy = round(0.42 * 0.2 * 332 * (1 / on + 1 / ch - 1 / oh - 1 / cn), 3)
            if energy < -0.5:
                result[i, j] = energy
    return result


def test_bonds_equal_loops_over_pairs(crambin):
    bonds = backbone_hbonds(crambin, best=None)
    result = dict(zip(zip(bonds.donor.tolist(), bonds.acceptor.tolist(), strict=True), bonds.energy, strict=True))
    assert result == pytest.approx(bonds_one_by_one(crambin), abs=1e-9)
    assert len(result) > 20


def test_the_two_best_of_each_donor_are_kept(structures_dir):
    residues = clean(load_structure(structures_dir / "1atp.bcif"))
    everything, best = backbone_hbonds(residues, best=None), backbone_hbonds(residues)
    for donor in np.unique(everything.donor):
        expected = np.sort(everything.energy[everything.donor == donor])[:2]
        assert best.energy[best.donor == donor].tolist() == expected.tolist()


def test_hydrogens_are_one_angstrom_from_n_antiparallel_to_c_o(crambin):
    hydrogen = amide_hydrogen(crambin)
    n, c, o = (crambin.backbone[:, k].astype(float) for k in (0, 2, 3))
    there = ~np.isnan(hydrogen[:, 0])
    assert [crambin.sequence[i] for i in np.flatnonzero(~there)] == ["T", *["P"] * 5]  # the first residue, prolines
    assert np.allclose(np.linalg.norm(hydrogen - n, axis=1)[there], 1)
    i = np.flatnonzero(there)
    cosine = ((hydrogen - n)[i] * (o - c)[i - 1]).sum(1) / np.linalg.norm((o - c)[i - 1], axis=1)
    assert np.allclose(cosine, -1)


def test_missing_atoms_have_no_bonds_and_no_hydrogen(crambin):
    backbone = crambin.backbone.copy()
    backbone[10, 3] = np.nan
    incomplete = replace(crambin, backbone=backbone)
    assert np.isnan(amide_hydrogen(incomplete)[11]).all()
    bonds = backbone_hbonds(incomplete)
    assert 10 not in bonds.acceptor
    assert 11 not in bonds.donor
    assert np.isfinite(bonds.energy).all()


def test_one_residue_and_coincident_atoms_have_no_bonds(crambin):
    alone = crambin.select(np.arange(len(crambin)) == 3)
    assert len(backbone_hbonds(alone).donor) == 0
    point = replace(crambin, pos=np.ones_like(crambin.pos), backbone=np.ones_like(crambin.backbone))
    assert len(backbone_hbonds(point).donor) == 0  # no direction to put a hydrogen
