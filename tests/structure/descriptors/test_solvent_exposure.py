"""Neighbor counts against loops over all pairs and Biopython."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from protgraph.structure import Residues, clean, load_structure
from protgraph.structure.descriptors.backbone_geometry import virtual_cb
from protgraph.structure.descriptors.ca_trace import sidechain_direction
from protgraph.structure.descriptors.solvent_exposure import (
    cb_direction,
    contact_number,
    half_sphere_exposure,
    protrusion,
)
from protgraph.structure.residues.alphabet import THREE_LETTER, UNKNOWN


@pytest.fixture(scope="module")
def proteins(structures_dir) -> list[Residues]:
    return [clean(load_structure(path)) for path in sorted(structures_dir.glob("*.bcif"))[::5][:52]]


def pairs(pos: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors from i to j ``(N, N, 3)`` and their lengths, infinite for i = j."""
    pos = pos.astype(float)
    vec = pos[None] - pos[:, None]
    return vec, np.linalg.norm(vec, axis=2) + np.diag(np.full(len(pos), np.inf))


def test_counts_equal_those_over_all_pairs(proteins):
    for residues in proteins[:6]:
        vec, distance = pairs(residues.pos)
        assert contact_number(residues, radius=10).tolist() == (distance <= 10).sum(1).tolist()
        for side in (sidechain_direction(residues), cb_direction(residues)):
            up = np.einsum("ijk,ik->ij", vec, side) > 0
            expected = np.stack([((distance <= 13) & half).sum(1) for half in (up, ~up)], 1)
            assert half_sphere_exposure(residues, side).tolist() == expected.tolist()


@pytest.mark.slow
def test_protrusion_equals_its_formula(proteins):
    residues = proteins[0]
    _, distance = pairs(residues.atom_pos)
    filled = 20.1 * ((distance <= 10).sum(1) + 1)
    assert np.allclose(protrusion(residues), (4 / 3 * np.pi * 1000 - filled) / filled)
    alone = residues.select(np.arange(len(residues)) == 0)
    one = replace(alone, atom_pos=alone.atom_pos[:1], atom_residue=alone.atom_residue[:1])
    assert protrusion(one) == pytest.approx(4 / 3 * np.pi * 1000 / 20.1 - 1)


def test_cb_direction_uses_the_cb_of_the_file_or_the_virtual_one(proteins):
    residues = proteins[0]
    side = cb_direction(residues)
    own = residues.atom_name == "CB"
    real = residues.atom_pos[own] - residues.pos[residues.atom_residue[own]]
    assert np.allclose(side[residues.atom_residue[own]], real / np.linalg.norm(real, axis=1, keepdims=True))
    assert np.linalg.norm(side, axis=1) == pytest.approx(1)
    hidden = cb_direction(residues.hide("sidechain"))
    virtual = virtual_cb(residues.backbone) - residues.pos
    assert np.allclose(hidden, virtual / np.linalg.norm(virtual, axis=1, keepdims=True))
    bare = np.full_like(residues.backbone, np.nan)
    bare[:, 1] = residues.pos
    assert not cb_direction(replace(residues.hide("sidechain"), backbone=bare)).any()


@pytest.mark.slow
def test_agreement_with_biopython(structures_dir, tmp_path, proteins, capsys):
    pytest.importorskip("Bio.PDB", reason="pip install biopython")
    from Bio.PDB import PDBParser
    from Bio.PDB.HSExposure import ExposureCN, HSExposureCA, HSExposureCB
    from biotite.structure.io.pdb import PDBFile

    from protgraph.structure import to_atom_array

    same, compared = {"cn": 0, "ca": 0, "cb": 0}, {"cn": 0, "ca": 0, "cb": 0}
    for residues in [r for r in proteins if len(r) < 400 and max(map(len, r.chain_names)) == 1]:
        standard = residues.select(np.isin(residues.res_name, THREE_LETTER[:UNKNOWN]) & (residues.ins_code == ""))
        atoms = to_atom_array(standard)
        file = PDBFile()
        file.set_structure(atoms)
        file.write(tmp_path / "one.pdb")
        model = PDBParser(QUIET=True).get_structure("one", tmp_path / "one.pdb")[0]
        rows = {(c, int(i)): k for k, (c, i) in enumerate(zip(standard.chain, standard.res_id, strict=True))}
        ours = {
            "cn": contact_number(standard, radius=12)[:, None],
            "ca": half_sphere_exposure(standard, sidechain_direction(standard), radius=12),
            "cb": half_sphere_exposure(standard, cb_direction(standard), radius=12),
        }
        for name, exposure in (("cn", ExposureCN(model)), ("ca", HSExposureCA(model)), ("cb", HSExposureCB(model))):
            for key in exposure.keys():  # noqa: SIM118 -- no dict
                row = rows.get((key[0], key[1][1]))
                if row is None or (name == "ca" and not sidechain_direction(standard)[row].any()):
                    continue  # no residue before or after
                if name == "cb" and standard.res_name[row] == "GLY":
                    continue  # each has its own virtual CB
                theirs = np.atleast_1d(exposure[key])[: ours[name].shape[1]]
                compared[name] += 1
                same[name] += theirs.astype(int).tolist() == ours[name][row].tolist()
    with capsys.disabled():
        for name, text in (("cn", "contact number"), ("ca", "HSEα"), ("cb", "HSEβ but of glycine")):
            print(f"\n{text}: {same[name]} of {compared[name]} residues the same", end="")
    assert min(compared.values()) > 5000
    assert all(same[name] >= 0.997 * compared[name] for name in same)  # 10sb: it leaves out a residue without bonds
