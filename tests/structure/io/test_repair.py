"""Repairs of PDB and CIF text: blank fields are filled in, broken ones raise with their position.

Then PDB files as programs write them beyond the format: words in place of records, column 21, five-digit numbers.
"""

from __future__ import annotations

import numpy as np
import pytest

from protgraph.errors import StructureFileError
from protgraph.structure import clean, load_structure
from protgraph.structure.io.pdb_values import edit_pdb
from protgraph.structure.io.repair import read_residue_numbers


def test_missing_occupancy_and_b_factor_are_filled_in_and_noted(write_pdb, pdb_lines):
    path = write_pdb([line[:54] for line in pdb_lines.residue("GLY", "A", 1, 0.0)])
    structure = load_structure(path)
    assert structure.atoms.occupancy.tolist() == [1.0] * 4 and structure.atoms.b_factor.tolist() == [0.0] * 4
    assert [text.split(" in ")[0] for text in structure.report.warnings[:2]] == ["no occupancy", "no B factor"]


def test_a_truncated_record_raises_with_its_line(write_pdb, pdb_lines):
    lines = pdb_lines.residue("GLY", "A", 1, 0.0)
    with pytest.raises(StructureFileError, match="line 4, columns 39–46"):
        load_structure(write_pdb(lines[:3], lines[3][:40]))


def test_words_instead_of_coordinates_raise(write_pdb, pdb_lines):
    lines = pdb_lines.residue("GLY", "A", 1, 0.0)
    broken = lines[0][:30] + "  banana" + lines[0][38:]
    with pytest.raises(StructureFileError, match="columns 31–38: '  banana'.*x"):
        load_structure(write_pdb(broken, lines[1:]))


def test_indented_cif_of_phenix_is_read(shared_data):
    residues = clean(load_structure(shared_data / "robustness" / "no-header__4lup_phenix_output.cif.gz"))
    assert len(residues) == 185 and residues.chain_names == ("A", "C")


def test_hexadecimal_numbers_after_9999_are_read_if_consecutive(write_pdb, pdb_lines):
    numbers = [9998, 9999, "2710", "2711", "271a"]
    lines = [line for i, n in enumerate(numbers[:4]) for line in pdb_lines.residue("GLY", "A", n, 3.9 * i)]
    residues = clean(load_structure(write_pdb(lines)))
    assert residues.res_id.tolist() == [9998, 9999, 10000, 10001] and residues.report.gaps == 0
    assert residues.report.warnings[0] == "residue numbers of 8 atom records after 9999 read as hexadecimal"
    jump = [*lines[:8], *pdb_lines.residue("GLY", "A", "271a", 7.8)]
    with pytest.raises(StructureFileError, match="271a"):
        load_structure(write_pdb(jump, name="jump.pdb"))


@pytest.mark.parametrize(
    ("fields", "numbers", "hexadecimal"),
    [
        (["9999", "   1", "2710"], [9999, 1, 2710], 0),
        (["2710", "2711"], [2710, 2711], 0),
        (["9998", "2710"], [9998, 2710], 0),
        (["9999", "2710", "2710", "2711", "   1", "   2", "2710"], [9999, 10000, 10000, 10001, 1, 2, 2710], 3),
        (["9999", "A000", "A001", "ZZZZ", "a000"], [9999, 10000, 10001, 1223055, 1223056], 0),
        ([" -12", "    ", "aA00", "1.0 "], [-12, None, None, None], 0),
    ],
)
def test_residue_numbers_are_decimal_hexadecimal_or_hybrid36(fields, numbers, hexadecimal):
    assert read_residue_numbers(fields) == (numbers, hexadecimal)


@pytest.mark.slow
def test_a_charmm_file_with_hexadecimal_numbers_is_read(shared_data):
    path = shared_data / "robustness" / "numbering__pdb1tw7_step3_charmm2namd_doubled_hex.pdb"
    residues = clean(load_structure(path))
    assert len(residues) == 396 and residues.report.waters == 31450  # HIV protease, 2 × 2 × 99, in water


def test_a_file_truncated_in_its_last_record_never_moves_an_atom(shared_data, tmp_path):
    lines = (shared_data / "formats" / "1k6p.pdb").read_bytes().split(b"\n")
    first = next(i for i, line in enumerate(lines) if line.startswith(b"ATOM"))
    whole = clean(load_structure(shared_data / "formats" / "1k6p.pdb"))
    begin = len(b"\n".join(lines[: first + 8])) + 1  # the second residue's CA
    for length in range(81):
        path = tmp_path / "cut.pdb"
        path.write_bytes(b"\n".join(lines)[: begin + length])
        try:
            residues = clean(load_structure(path))
        except StructureFileError as e:
            assert 4 <= length < 66 and "column" in str(e)
            continue
        assert (residues.pos == whole.pos[: len(residues)]).all() and residues.b_factor[0] == whole.b_factor[0]
        assert len(residues) == 1 or residues.b_factor[1] == (whole.b_factor[1] if length >= 66 else 0)


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
    atoms = load_structure(path).atoms
    written = edit_pdb(path.read_text(), 1, atoms, np.full(len(chain), 7.0), [], "x").text
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


def _without_chain(lines, segments):
    """Return records with blank chain ids and other columns 73–76; ``segments`` is a function of the record."""
    return [line[:21] + " " + line[22:72] + f"{segments(line):<4}" + line[76:] for line in lines]


SEGMENTS = {
    "element in column 76": lambda line: f"{line[13]:>4}",
    "charges of PDBQT": lambda line: {"N": "0.34", "C": ".123"}.get(line[13:15].strip(), ".005"),
    "residue numbers": lambda line: line[22:26].strip(),
    "atom names": lambda line: line[13:16],
    "occupancies": lambda line: f"{int(line[25]) / 9:.2f}",
}


@pytest.mark.parametrize("kind", SEGMENTS)
def test_columns_73_to_76_that_differ_between_bonded_atoms_are_no_segments(chain, write_pdb, kind):
    residues = clean(load_structure(write_pdb(_without_chain(chain, SEGMENTS[kind]))))
    assert residues.sequence == "GAKC" and residues.chain_names == ("",) and len(residues.atom_name) == 16
    assert residues.report.duplicate_atoms == 0 and "not read as segment ids" in residues.report.warnings[0]
    trace = [line for line in _without_chain(chain, SEGMENTS[kind]) if line[13:15] == "CA"]
    assert clean(load_structure(write_pdb(trace))).chain_names == ("",)


@pytest.mark.parametrize("names", [("PROA", "PROB"), ("A", "B"), ("   A", "   B"), ("1", "2")])
@pytest.mark.parametrize("trace", [False, True])
def test_segment_ids_of_chains_are_read(chain, pdb_lines, write_pdb, names, trace):
    far = [line[:30] + f"{float(line[30:38]) + 99:8.3f}" + line[38:] for line in chain]
    lines = [*_without_chain(chain, lambda _: names[0]), *_without_chain(far, lambda _: names[1])]
    residues = clean(load_structure(write_pdb([line for line in lines if not trace or line[13:15] == "CA"])))
    assert residues.chain_names == tuple(name.strip() for name in names) and residues.sequence == "GAKCGAKC"


@pytest.mark.parametrize(
    "res_name", ["HID", "HIE", "HIP", "HSD", "HSE", "HSP", "CYX", "ASH", "LYN", "MSE", "UN9", "SER"]
)
@pytest.mark.parametrize("has_elements", [False, True])
def test_names_at_the_first_column_are_no_metals(chain, write_pdb, res_name, has_elements):
    """Without elements, CA at the first column of an amino acid is no calcium; the ion, in residue CA, is."""
    lines = [line[:12] + f"{line[12:16].strip():<4}" + line[16:76] + line[76:] * has_elements for line in chain]
    lines = [line[:17] + res_name + line[20:] if line[25] == "2" else line for line in lines]
    ion = "HETATM   99 CA    CA A 101      20.000  10.000   5.000  1.00 10.00"
    zinc = "HETATM  100 ZN    ZN A 102      20.000  20.000   5.000  1.00 10.00"
    structure = load_structure(write_pdb(lines, ion, zinc))
    residues = clean(structure)
    assert len(residues) == 4 and residues.res_name[1] == res_name and set(residues.atom_element) == {"C", "N", "O"}
    assert residues.report.ligands == {"CA": 1, "ZN": 1} and structure.atoms.element[-2:].tolist() == ["CA", "ZN"]


def test_calcium_is_calcium_in_files_with_usual_names(chain, write_pdb):
    ion = "HETATM   99 CA    CA A 101      20.000  10.000   5.000  1.00 10.00"
    structure = load_structure(write_pdb([line[:76] for line in chain], ion))
    assert structure.atoms.element[-1] == "CA" and len(clean(structure)) == 4


FOOTERS = [["model 1 score -3.2"], ["MODEL 1", "score 3"], ["Model: 5", "model 6"], ["REMARK x", "MODEL        2"]]


@pytest.mark.parametrize("footer", FOOTERS)
@pytest.mark.parametrize("end", [[], ["TER"], ["TER", "END"]])
def test_words_after_the_atoms_are_no_models(chain, tmp_path, footer, end):
    path = tmp_path / "x.pdb"
    path.write_text("\n".join([*chain, *end, *footer]) + "\n")
    residues = clean(load_structure(path))
    assert residues.sequence == "GAKC" and residues.report.lines() == []
    in_model = tmp_path / "y.pdb"
    in_model.write_text("\n".join(["MODEL        1", *chain, "ENDMDL", *footer]) + "\n")
    assert clean(load_structure(in_model)).report.lines() == []


@pytest.mark.parametrize("padding", [b"\0", b"\0" * 700, b"\0\0\n", b"\n\0\0 \r\n\0"])
@pytest.mark.parametrize("end", [b"", b"\n", b"\nEND\n"])
def test_nul_bytes_after_the_text_are_left_out_with_a_note(chain, tmp_path, padding, end):
    plain, padded = tmp_path / "plain.pdb", tmp_path / "padded.pdb"
    plain.write_bytes("\n".join(chain).encode() + b"\n")
    padded.write_bytes("\n".join(chain).encode() + end + padding)
    residues = clean(load_structure(padded))
    assert residues.atom_pos.tobytes() == clean(load_structure(plain)).atom_pos.tobytes()
    assert residues.report.warnings == (f"{padding.count(0)} NUL bytes at the end of the file left out",)


def test_nul_bytes_after_mmcif_are_left_out(tmp_path, structures_dir):
    text = (
        "data_x\nloop_\n_atom_site.id\n_atom_site.label_atom_id\n_atom_site.label_comp_id\n_atom_site.label_asym_id\n"
    )
    text += "_atom_site.label_seq_id\n_atom_site.Cartn_x\n_atom_site.Cartn_y\n_atom_site.Cartn_z\n1 CA GLY A 1 1 2 3\n"
    path = tmp_path / "x.cif"
    path.write_bytes(text.encode() + b"\0" * 9)
    assert clean(load_structure(path)).report.warnings[0] == "9 NUL bytes at the end of the file left out"


def test_nul_bytes_inside_the_text_and_truncation_before_them_are_errors(chain, tmp_path):
    path = tmp_path / "x.pdb"
    text = "\n".join(chain).encode()
    path.write_bytes(text[:300] + b"\0" * 8 + text[308:])
    with pytest.raises(StructureFileError, match=r"NUL bytes inside the text, the first one at byte 300\."):
        load_structure(path)
    path.write_bytes(text[: text.rfind(b"\n") + 53] + b"\0" * 20)
    with pytest.raises(StructureFileError, match="truncated"):
        load_structure(path)


@pytest.mark.parametrize("chain_id", ["A", " "])
def test_atom_types_of_pdbqt_are_elements(chain, write_pdb, chain_id):
    """AutoDock: A is an aromatic carbon, OA, NA and SA accept hydrogen bonds, HD is a polar hydrogen."""
    types = {"N": "NA", "CA": "A", "C": "C", "O": "OA"}
    charged = [f"{line[:21]}{chain_id}{line[22:70]}{0.3 - i % 4 / 10:6.3f}" for i, line in enumerate(chain)]
    lines = [f"{line} {types[line[12:16].strip()]:<2}" for line in charged]
    ligands = [("ZN", " ZN", "Zn"), ("CL1", "LIG", "Cl"), ("FE", "HEM", "Fe"), ("HN", "LIG", "HD"), ("N1", "LIG", "NA")]
    for i, (name, res_name, kind) in enumerate(ligands):
        place = f"{50 + 9 * i:8.3f}   0.000   0.000  1.00  0.00     0.000 {kind}"
        lines.append(f"HETATM   30  {name:<3} {res_name} {chain_id}{90 + i:4d}    {place}")
    structure = load_structure(write_pdb("ROOT", lines, "TORSDOF 3"))
    assert structure.atoms.element[-5:].tolist() == ["ZN", "CL", "FE", "H", "N"]
    residues = clean(structure)
    assert residues.sequence == "GAKC" and residues.atom_element.tolist() == ["N", "C", "C", "O"] * 4
