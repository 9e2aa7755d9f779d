"""Residue names: parents of modified residues and kinds of molecules."""

from __future__ import annotations

import pytest
from biotite.sequence import ProteinSequence
from biotite.structure import info

from protgraph.structure.residues.alphabet import (
    ALPHABET,
    KINDS,
    THREE_LETTER,
    UNKNOWN,
    aatype,
    name_numbers,
    residue_kind,
)


def test_alphabet_is_the_sorted_one_letter_codes_then_x():
    assert sorted(ALPHABET[:20]) == list(ALPHABET[:20]) and ALPHABET[20] == "X"


def test_three_letter_names_agree_with_biotite():
    assert [ProteinSequence.convert_letter_3to1(name) for name in THREE_LETTER[:20]] == list(ALPHABET[:20])


@pytest.mark.parametrize(
    ("name", "letter"),
    [("MSE", "M"), ("SEP", "S"), ("TPO", "T"), ("PTR", "Y"), ("CSO", "C"), ("KCX", "K"), ("PCA", "Q"), ("M3L", "K")],
)
def test_modified_residues_have_the_parent_of_the_chemical_component_dictionary(name, letter):
    assert ALPHABET[aatype(name)] == letter and residue_kind(name) == "protein"


@pytest.mark.parametrize(("name", "letter"), [("DAL", "A"), ("DVA", "V"), ("DPN", "F"), ("DLY", "K"), ("DTR", "W")])
def test_d_amino_acids_have_their_mirror_image_as_parent(name, letter):
    assert ALPHABET[aatype(name)] == letter and residue_kind(name) == "protein"


@pytest.mark.parametrize(("name", "letter"), [("HSD", "H"), ("HIE", "H"), ("CYX", "C"), ("ASH", "D"), ("SEC", "C")])
def test_names_missing_in_the_dictionary_come_from_the_table(name, letter):
    assert ALPHABET[aatype(name)] == letter and residue_kind(name) == "protein"


@pytest.mark.parametrize("name", ["UNK", "CRO", "ASX", "GLX", "no such name", ""])
def test_residues_without_a_single_parent_are_x(name):
    assert aatype(name) == UNKNOWN


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("HOH", "water"),
        ("DOD", "water"),
        ("DA", "nucleic"),
        ("PSU", "nucleic"),
        ("NAG", "saccharide"),
        ("HEM", "other"),
        ("CA", "other"),
        ("ACE", "other"),
        ("UNX", "other"),
    ],
)
def test_residue_names_have_their_kind_of_molecule(name, kind):
    assert residue_kind(name) == kind


def test_numbers_of_names_are_their_kinds_and_amino_acids():
    names = [*THREE_LETTER, "MSE", "HID", "HOH", "DA", "NAG", "HEM", "", "GLY"]
    kind, amino_acid = name_numbers(names)
    assert [KINDS[i] for i in kind] == [residue_kind(name) for name in names]
    assert amino_acid.tolist() == [THREE_LETTER.index(n) if n in THREE_LETTER else -1 for n in names]
    assert [len(numbers) for numbers in name_numbers([])] == [0, 0]


def test_parents_agree_with_the_one_letter_codes_of_the_dictionary():
    known = [(str(n), info.one_letter_code(str(n))) for n in info.amino_acid_names()]
    differ = {n for n, one in known if one and one in ALPHABET[:20] and ALPHABET[aatype(n)] != one}
    assert len(differ) <= 10  # the dictionary contradicts itself: parent and one-letter code name two amino acids
    assert len(known) > 1000
