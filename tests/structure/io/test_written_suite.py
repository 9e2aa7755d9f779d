"""Every file of the test data is written in both formats, and gemmi reads the atoms of the source from it."""

from __future__ import annotations

import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import gemmi
import numpy as np
import pytest

from protgraph.errors import EmptyStructureError, OptionError, StructureFileError
from protgraph.structure.io import ResidueValues, read_residues, write_residue_values
from protgraph.structure.io.readers import read_atoms

DATA = Path(__file__).parents[3]
ENTRIES = sorted((DATA / "datasets" / "pdb_core" / "structures").glob("*.bcif"))
QUICK = ("1crn", "1bfr", "1a8o", "1f2n", "2bm2", "10sb", "1lcd", "1ubq")
SAMPLE = ("formats/1dix.pdb", "formats/1l2y.cif", "formats/3o5r.bcif", "robustness/icode__1a0q.pdb",
          "robustness/no-header__dummy_nohead.pdb", "robustness/cif-odd__1fbl_pymol.cif",
          "robustness/predicted__7ubd_from_af3.cif", "robustness/numbering__noChainNameTerRecords.pdb")  # fmt: skip
ROUNDING = 6e-4  # Å, of coordinates with three decimals


def values_of(residues):
    identity = (residues.chain, residues.res_id, residues.ins_code, residues.res_name)
    return ResidueValues("p_site", *identity, np.linspace(0, 1, len(residues)), True)


def grouped(rows):
    """Return the sorted positions of each identity; a file may have atoms twice."""
    positions = defaultdict(list)
    for *identity, x, y, z in rows:
        positions[tuple(identity)].append((x, y, z))
    return {identity: np.array(sorted(found)) for identity, found in positions.items()}


def atoms_by_gemmi(path, *, with_chain):
    structure = gemmi.read_pdb(str(path)) if path.suffix == ".pdb" else gemmi.read_structure(str(path))
    assert len(structure) == 1
    rows = []
    for chain in structure[0]:
        for residue in chain:
            place = (chain.name if with_chain else "", residue.seqid.num, residue.seqid.icode.strip(), residue.name)
            for atom in residue:
                what = (atom.name, atom.altloc.strip("\0 "), atom.element.name.upper(), round(atom.occ, 2))
                rows.append((*place, *what, *atom.pos.tolist()))
    return grouped(rows)


def atoms_of(atoms, *, with_chain):
    chain = atoms.chain_id if with_chain else np.full(len(atoms), "")
    columns = (chain, atoms.res_id, atoms.ins_code, atoms.res_name, atoms.atom_name, atoms.altloc_id)
    numbers = (atoms.occupancy.round(2), *atoms.coord.astype(float).T)
    elements = np.char.upper(atoms.element)
    return grouped(zip(*(c.tolist() for c in (*columns, elements, *numbers)), strict=True))


def check_written(source, path):
    """Write a file and compare it with its source; return the residues."""
    residues, parsed = read_residues(source), read_atoms(source)
    atoms = parsed.atoms
    is_wide = max(map(len, atoms.chain_id.tolist())) > 1 or max(map(len, atoms.res_name.tolist())) > 3
    if path.suffix == ".pdb" and parsed.format != "pdb" and is_wide:
        with pytest.raises(OptionError):
            write_residue_values(path, source, values_of(residues))
        assert not path.exists()
        return None
    written = write_residue_values(path, source, values_of(residues))
    assert written.residues == len(residues)
    # Segment ids are not written as chain ids into PDB files, and blank ids not into mmCIF files.
    with_chain = not (atoms.chain_id == "").any() and (path.suffix == ".cif" or not is_wide)
    expected, found = (f(x, with_chain=with_chain) for f, x in ((atoms_of, atoms), (atoms_by_gemmi, path)))
    assert set(found) == set(expected)
    for identity, positions in expected.items():
        assert found[identity].shape == positions.shape
        assert np.nanmax(np.abs(found[identity] - positions)) <= ROUNDING, identity
    again = read_residues(path)
    assert len(again) == len(residues) and again.sequence == residues.sequence
    np.testing.assert_allclose(again.b_factor, values_of(residues).b_factor, atol=5.1e-3)
    return residues


@pytest.mark.parametrize("suffix", [".pdb", ".cif"])
@pytest.mark.parametrize(
    "entry",
    [pytest.param(p, marks=[] if p.stem in QUICK else pytest.mark.slow, id=p.stem) for p in ENTRIES],
)
def test_entries_are_written_as_they_are(tmp_path, entry, suffix):
    check_written(entry, tmp_path / f"a{suffix}")


@pytest.mark.parametrize("suffix", [".pdb", ".cif"])
@pytest.mark.parametrize("name", SAMPLE)
def test_odd_files_are_written_as_they_are_read(shared_data, tmp_path, name, suffix):
    check_written(shared_data / name, tmp_path / f"a{suffix}")


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".pdb", ".cif"])
@pytest.mark.parametrize("folder", ["formats", "robustness"])
def test_all_files_beside_the_project_are_written_as_they_are_read(shared_data, tmp_path, folder, suffix):
    count = 0
    for source in sorted((shared_data / folder).iterdir()):
        try:
            read_residues(source)
        except (EmptyStructureError, StructureFileError):
            continue
        check_written(source, tmp_path / f"{source.name.replace('.', '_')}{suffix}")
        count += 1
    assert count > 30


@pytest.mark.parametrize("suffix", [".pdb", ".cif"])
@pytest.mark.parametrize("entry", ["1crn", "1bfr", "1a8o", "1f2n"])
def test_mkdssp_finds_all_residues_of_written_entries(structures_dir, tmp_path, entry, suffix):
    program = shutil.which("mkdssp")
    if program is None:
        pytest.skip("mkdssp is not installed")
    source, path, result = structures_dir / f"{entry}.bcif", tmp_path / f"a{suffix}", tmp_path / "a.dssp"
    residues = read_residues(source)
    write_residue_values(path, source, values_of(residues))
    subprocess.run([program, path, result], check=True, capture_output=True, timeout=120)
    table = result.read_text().split("  #  RESIDUE", 1)[1].splitlines()[1:]
    assert sum(line[13] != "!" for line in table) == residues.backbone_mask.all(axis=1).sum()


def test_the_quick_entries_are_there():
    assert set(QUICK) <= {path.stem for path in ENTRIES}
