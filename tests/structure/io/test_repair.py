"""Repairs of PDB and CIF text: blank fields are filled in, broken ones raise with their position."""

from __future__ import annotations

import pytest

from protgraph.errors import StructureFileError
from protgraph.structure import clean, load_structure
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
