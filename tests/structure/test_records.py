"""Text repairs fill in what is missing and point at what is broken."""

from __future__ import annotations

import pytest

from protgraph.errors import StructureFileError
from protgraph.structure import clean, load_structure
from protgraph.structure.records import complete_records, strip_indent


def test_complete_text_is_not_touched(made):
    text = "\n".join(made[1]("GLY", "A", 1, 0.0))
    assert complete_records(text) == (text, ())


def test_missing_occupancy_and_b_factor_are_filled_in_and_noted(write_pdb, made):
    path = write_pdb([line[:54] for line in made[1]("GLY", "A", 1, 0.0)])
    structure = load_structure(path)
    assert structure.atoms.occupancy.tolist() == [1.0] * 4 and structure.atoms.b_factor.tolist() == [0.0] * 4
    assert any("no occupancy in 4 atom records" in text for text in clean(structure).report.warnings)


def test_a_record_that_is_cut_off_is_named_by_its_line(write_pdb, made):
    lines = made[1]("GLY", "A", 1, 0.0)
    with pytest.raises(StructureFileError, match="line 4, columns 39–46.*cut off"):
        load_structure(write_pdb(lines[:3], lines[3][:40]))


def test_words_in_place_of_coordinates_are_named(write_pdb, made):
    lines = made[1]("GLY", "A", 1, 0.0)
    broken = lines[0][:30] + "  banana" + lines[0][38:]
    with pytest.raises(StructureFileError, match="'  banana' is no number for x"):
        load_structure(write_pdb(broken, lines[1:]))


def test_strip_indent_keeps_text_fields_apart():
    text = "data_x\nloop_\n  _atom_site.id\n  1\n_note\n;\n  ; inside\n;\n"
    assert strip_indent(text) == "data_x\nloop_\n_atom_site.id\n1\n_note\n;\n ; inside\n;\n"
    assert strip_indent("data_x\n  kept") == "data_x\n  kept"


def test_phenix_dialect_is_read(shared_data):
    residues = clean(load_structure(shared_data / "robustness" / "no-header__4lup_phenix_output.cif.gz"))
    assert len(residues) == 185 and residues.chain_names == ("A", "C")
