"""PDB files as programs write them beyond the format: words in place of records, column 21, five-digit numbers."""

from __future__ import annotations

import numpy as np
import pytest

from protgraph.errors import StructureFileError
from protgraph.structure import clean, load_structure
from protgraph.structure.io.pdb_values import replace_b_factors


@pytest.fixture
def chain(pdb_lines):
    """Return the records of GLY, ALA, LYS and CYS, numbered from 1."""
    names = ("GLY", "ALA", "LYS", "CYS")
    return [line for i, name in enumerate(names) for line in pdb_lines.residue(name, "A", i + 1, 3.9 * i)]


def _renamed(lines, old, new):
    return [line[:17] + new + line[21:] if line[17:20] == old else line for line in lines]


SCORES = [
    "TER",
    "# All scores below are weighted scores",
    "atom_pair_constraint 0.5",
    "hetatm_x 1",
    "model_quality 1.0",
]


def test_scores_of_rosetta_and_words_like_records_are_no_atoms(chain, write_pdb):
    plain = clean(load_structure(write_pdb(chain)))
    path = write_pdb(["ATOMIC COORDINATES", "Models: one", "Endings"], chain, SCORES)
    scored = clean(load_structure(path))
    assert scored.atom_pos.tobytes() == plain.atom_pos.tobytes() and scored.report == plain.report
    written = replace_b_factors(path.read_text(), 1, np.full(len(chain), 7.0), [], "x")
    assert written.count("  7.00") == len(chain) and "atom_pair_constraint 0.5" in written


@pytest.mark.parametrize("serial", ["ATOM 100000", "ATOM  *****", "ATOM       ", "atom      1", "ATOM1000000"])
def test_serials_of_any_width_are_atoms(chain, write_pdb, serial):
    residues = clean(load_structure(write_pdb([serial + line[11:] for line in chain])))
    assert residues.sequence == "GAKC"


def test_a_byte_order_mark_does_not_hide_the_first_atom(chain, tmp_path):
    path = tmp_path / "mark.pdb"
    path.write_bytes(b"\xef\xbb\xbf" + "\n".join(chain).encode())
    assert len(load_structure(path).atoms) == len(chain)


def test_an_archive_is_named_in_the_error(tmp_path):
    path = tmp_path / "x.pdb.gz"
    path.write_bytes(b"x.pdb".ljust(257, b"\0") + b"ustar".ljust(255, b"\0"))
    with pytest.raises(StructureFileError, match=r"x\.pdb\.gz: a tar archive"):
        load_structure(path)


@pytest.mark.parametrize(("first", "second"), [("AA", "BA"), ("A ", "B "), ("1A", "2A")])
def test_chain_ids_of_two_characters_are_not_merged(chain, write_pdb, first, second):
    """gemmi, the witness, reads the same chain ids."""
    gemmi = pytest.importorskip("gemmi", reason="gemmi is not installed")
    later = [f"{line[:22]}{int(line[22:26]) + 50:4d}{line[26:]}" for line in chain]
    path = write_pdb([r[:20] + first + r[22:] for r in chain], [r[:20] + second + r[22:] for r in later])
    residues = clean(load_structure(path))
    assert residues.chain_names == (first.strip(), second.strip()) and "21–22" in residues.report.warnings[0]
    assert [c.name for c in gemmi.read_structure(str(path))[0]] == [first.strip(), second.strip()]


@pytest.mark.parametrize(("old", "new"), [("LYS", "LYSH"), ("CYS", "CYS2")])
def test_a_fourth_letter_of_protonation_states_is_no_chain_id(chain, write_pdb, old, new):
    residues = clean(load_structure(write_pdb(_renamed(chain, old, new))))
    assert residues.sequence == "GAKC" and residues.chain_names == ("A",) and not residues.report.warnings


def test_terminal_residues_of_amber_keep_their_type(chain, write_pdb):
    residues = clean(load_structure(write_pdb(_renamed(_renamed(chain, "GLY", "NGLY"), "CYS", "CCYX"))))
    assert residues.sequence == "GAKC" and residues.res_name.tolist() == ["GLY", "ALA", "LYS", "CYX"]
    assert "NGLY, CCYX" in residues.report.warnings[0]


def _numbered(lines, number):
    width = {True: 4, False: 5}
    return [
        f"{line[:22]}{n:{width[n < 10000]}d}{' ' * (n < 10000)}{line[27:]}"
        for line in lines
        for n in [number + int(line[22:26]) - 1]
    ]


@pytest.mark.parametrize("number", [9998, 9999, 10000, 12344, 99996])
def test_residue_numbers_of_five_digits_are_read(chain, write_pdb, number):
    residues = clean(load_structure(write_pdb(_numbered(chain, number))))
    assert residues.res_id.tolist() == [number + i for i in range(4)] and set(residues.ins_code) == {""}
    assert "five digits" in residues.report.warnings[0]


def test_digits_after_the_number_of_a_residue_are_insertion_codes(chain, write_pdb):
    lines = [f"{line[:22]}1000{' 123'[int(line[25]) - 1]}{line[27:]}" for line in chain]
    residues = clean(load_structure(write_pdb(lines)))
    assert residues.ids == ["A:1000", "A:10001", "A:10002", "A:10003"]
    assert residues.ins_code.tolist() == ["", "1", "2", "3"] and not residues.report.warnings


def test_elements_that_an_amino_acid_cannot_have_are_inferred(chain, write_pdb):
    """Some programs write the first two letters of the name as the element, which made alpha carbons calcium."""
    wrong = [line[:76] + line[13:15].strip().rjust(2) + line[78:] for line in chain]
    plain, read = (clean(load_structure(write_pdb(lines))) for lines in (chain, wrong))
    assert read.atom_element.tolist() == plain.atom_element.tolist() and read.report.inferred_elements == 4
