"""Residues: ids, selections and hidden information."""

from __future__ import annotations

import numpy as np
import pytest

from protgraph.errors import OptionError, SelectionError
from protgraph.structure import ALPHABET, Residues, clean, load_structure


@pytest.fixture(scope="module")
def residues(structures_dir) -> Residues:
    return clean(load_structure(structures_dir / "1jk9.bcif"))


def test_ids_have_chain_number_and_insertion_code(shared_data):
    result = clean(load_structure(shared_data / "formats" / "1igy.pdb"))
    assert len(set(result.ids)) == len(result) == 1294
    inserted = result.ins_code != ""
    assert inserted.any() and all(name[-1].isalpha() for name, yes in zip(result.ids, inserted, strict=True) if yes)


def test_chain_numbers_follow_the_order_of_appearance(residues):
    assert residues.chain_names == ("A", "B", "C", "D")
    assert [residues.chain_names[i] for i in residues.chain_number] == residues.chain.tolist()


def test_atom_ptr_delimits_the_atoms_of_each_residue(residues):
    ptr = residues.atom_ptr
    assert ptr[0] == 0 and ptr[-1] == len(residues.atom_name)
    for i in (0, 17, len(residues) - 1):
        assert set(residues.atom_residue[ptr[i] : ptr[i + 1]]) == {i}
        assert "CA" in residues.atom_name[ptr[i] : ptr[i + 1]]


def test_pos_is_ca_of_the_backbone_and_among_the_atoms(residues):
    np.testing.assert_array_equal(residues.pos, residues.backbone[:, 1])
    alpha = residues.atom_name == "CA"
    np.testing.assert_array_equal(residues.atom_pos[alpha], residues.pos)
    assert residues.atom_residue[alpha].tolist() == list(range(len(residues)))


def test_select_returns_residues_with_their_atoms(residues):
    keep = np.arange(len(residues)) % 3 == 0
    part = residues.select(keep)
    assert part.ids == [name for name, yes in zip(residues.ids, keep, strict=True) if yes]
    np.testing.assert_array_equal(part.atom_pos, residues.atom_pos[keep[residues.atom_residue]])
    assert part.atom_residue.max() == len(part) - 1 and (np.diff(part.atom_residue) >= 0).all()


def test_chains_keeps_file_order_and_counts_the_others(residues):
    part = residues.chains(["C", "A"])
    assert part.chain_names == ("A", "C")
    assert part.report.excluded_chains == {name: int((residues.chain == name).sum()) for name in "BD"}
    assert len(part) + sum(part.report.excluded_chains.values()) == len(residues)


def test_a_single_text_is_one_chain_id(residues):
    assert residues.chains("B").chain_names == ("B",)
    with pytest.raises(SelectionError, match="'AB'"):
        residues.chains("AB")


def test_an_unknown_chain_raises_with_the_available_ones(residues):
    with pytest.raises(SelectionError, match="'Z'.*'A', 'B', 'C', 'D'"):
        residues.chains(["Z"])


def test_hidden_residue_types_leave_no_residue_names(shared_data):
    result = clean(load_structure(shared_data / "robustness" / "ligand__1oky.pdb.gz"))
    hidden = result.hide({"residue_type"})
    assert set(hidden.res_name) == {"UNK"} and set(hidden.sequence) == {"X"}
    assert result.report.modified == {"SEP": 1} and not hidden.report.modified
    assert set(result.res_name) != {"UNK"} and "SEP" in result.res_name  # the input is not changed


def test_hidden_side_chains_leave_equal_atoms_for_all_types(residues):
    hidden = residues.hide({"sidechain"})
    assert set(hidden.atom_name) == {"N", "CA", "C", "O"}
    complete = residues.backbone_mask.all(axis=1)
    assert set(np.diff(hidden.atom_ptr)[complete]) == {4}
    np.testing.assert_array_equal(hidden.backbone, residues.backbone)


def test_hidden_b_factors_are_zero(residues):
    assert not residues.hide({"b_factor"}).b_factor.any() and residues.b_factor.any()


def test_hiding_unknown_information_raises(residues):
    with pytest.raises(OptionError, match="'chain'"):
        residues.hide({"chain"})


def test_sequence_is_the_letters_of_aatype(residues):
    assert residues.sequence == "".join(ALPHABET[i] for i in residues.aatype)
    assert repr(residues).startswith("Residues('1jk9', ")
