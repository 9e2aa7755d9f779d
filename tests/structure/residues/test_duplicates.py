"""Repeated residue identities are renamed, joined or left out, and counted."""

from __future__ import annotations

import numpy as np
import pytest
from biotite.structure import info

from protgraph.structure import clean, load_structure
from protgraph.structure.residues.alphabet import AMINO_ACID_NAMES
from protgraph.structure.residues.duplicates import _is_first
from protgraph.structure.residues.text_codes import pack_texts


@pytest.mark.parametrize("names", [["N", "CA", "C", "O"], [f"C{i}" for i in range(90)], ["CA"]])
def test_only_the_first_atom_of_each_name_is_kept(names):
    """Residues of 0 to 100 atoms with repeated names, against a set per residue; 90 names share 64 bits."""
    rng, name, start, expected = np.random.default_rng(0), [], [], []
    for size in (1, 3, 100, 2, 64, 65):
        start.append(len(name))
        own = rng.choice(names, size).tolist() if size > len(names) else rng.permutation(names)[:size].tolist()
        expected += [text not in own[:i] for i, text in enumerate(own)]
        name += own
    assert _is_first(np.array(start), pack_texts(np.array(name))).tolist() == expected
    assert _is_first(np.zeros(0, np.int64), np.zeros(0, np.uint64)).tolist() == []


def test_names_of_amino_acids_are_compared_as_bits_only(monkeypatch):
    names = [info.residue(name) for name in AMINO_ACID_NAMES[:20]]
    heavy = [atoms.atom_name[atoms.element != "H"] for atoms in names]
    start = np.cumsum([0, *map(len, heavy[:-1])])
    monkeypatch.setattr(np, "lexsort", None)
    assert _is_first(start, pack_texts(np.concatenate(heavy))).all()


def test_a_reused_chain_id_becomes_a_second_chain(shared_data):
    residues = clean(load_structure(shared_data / "robustness" / "numbering__chainIDrepeat.pdb.gz"))
    assert residues.ids == ["A:1", "B:2", "C:3", "D:3", "A-2:1", "B-2:2"]
    assert residues.report.repeated_chains == {"A-2": 1, "B-2": 1}


def test_residues_after_a_restart_stay_in_the_second_chain(write_pdb, pdb_lines):
    _, residue = pdb_lines
    path = write_pdb(
        *[residue("GLY", "A", i, 3.9 * i) for i in (1, 2)], *[residue("ALA", "A", i, 99 + 3.9 * i) for i in (1, 2, 3)]
    )
    residues = clean(load_structure(path))
    assert residues.ids == ["A:1", "A:2", "A-2:1", "A-2:2", "A-2:3"] and residues.report.repeated_chains == {"A-2": 3}
    assert residues.seq_pos.tolist() == [0, 1, 0, 1, 2]


def test_a_new_chain_id_differs_from_the_existing_ones(tmp_path):
    names = ("id", "label_atom_id", "label_comp_id", "label_asym_id", "label_seq_id", "Cartn_x", "Cartn_y", "Cartn_z")
    rows = [f"{i} CA GLY {chain} 1 {20 * i} 0 0" for i, chain in enumerate(("A", "A-2", "A"), start=1)]
    head = "data_x\nloop_\n" + "".join(f"_atom_site.{name}\n" for name in names)
    (tmp_path / "x.cif").write_text(head + "\n".join(rows) + "\n")
    residues = clean(load_structure(tmp_path / "x.cif"))
    assert residues.chain_names == ("A", "A-2", "A-3") and residues.pos[:, 0].tolist() == [20, 40, 60]


def test_blank_chain_ids_stay_blank(shared_data):
    residues = clean(load_structure(shared_data / "robustness" / "numbering__noChainNameTerRecords.pdb"))
    assert residues.chain_names == ("",) and residues.ids[0].startswith(":")


def test_fragments_of_a_residue_are_joined(shared_data, pdb_lines, write_pdb):
    atom, residue = pdb_lines
    side_chain = [atom("CB", "ALA", "A", i, (3.9 * i + 1.5, -1.5, 0.0)) for i in (1, 2)]
    residues = clean(load_structure(write_pdb(*[residue("ALA", "A", i, 3.9 * i) for i in (1, 2)], side_chain)))
    assert residues.atom_name.tolist() == ["N", "CA", "C", "O", "CB"] * 2
    assert residues.atom_residue.tolist() == [0] * 5 + [1] * 5
    assert "repeated_chains" not in residues.report.to_dict()
    assert len(clean(load_structure(shared_data / "robustness" / "numbering__unordered_res.pdb"))) == 35


def test_the_first_of_two_atoms_of_one_name_is_kept(write_pdb, pdb_lines):
    atom, residue = pdb_lines
    lines = residue("ALA", "A", 1, 0.0)
    residues = clean(load_structure(write_pdb(lines, atom("CA", "ALA", "A", 1, 7.0))))
    np.testing.assert_array_equal(residues.pos, [[1.5, 0, 0]])
    assert residues.report.duplicate_atoms == 1 and len(residues.atom_name) == 4


def test_a_second_residue_of_the_same_number_directly_after_is_left_out(write_pdb, pdb_lines):
    _, residue = pdb_lines
    path = write_pdb(residue("SER", "A", 1, 0.0), residue("PRO", "A", 1, 0.5), residue("GLY", "A", 2, 3.9))
    residues = clean(load_structure(path))
    assert residues.sequence == "SG" and residues.report.duplicate_atoms == 4


def test_residues_of_a_chain_become_consecutive(write_pdb, pdb_lines):
    _, residue = pdb_lines
    path = write_pdb(
        residue("GLY", "A", 1, 0.0),
        residue("SER", "B", 1, 30.0),
        residue("ALA", "A", 2, 3.9),
        residue("TRP", "B", 2, 33.9),
    )
    residues = clean(load_structure(path))
    assert residues.ids == ["A:1", "A:2", "B:1", "B:2"] and residues.seq_pos.tolist() == [0, 1, 0, 1]


def test_identities_are_unique_in_every_committed_entry(structures_dir):
    for path in sorted(structures_dir.glob("*.bcif"))[::7]:
        ids = clean(load_structure(path)).ids
        assert len(set(ids)) == len(ids), path.name
