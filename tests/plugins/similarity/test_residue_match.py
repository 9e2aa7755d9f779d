"""Corresponding residues by number and by sequence, of one chain and of several."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from protgraph_plugins.similarity import match_residues

from protgraph.errors import OptionError, SelectionError
from protgraph.structure import Residues, clean, load_structure


@pytest.fixture(scope="module")
def crambin(structures_dir) -> Residues:
    return clean(load_structure(structures_dir / "1crn.bcif"))


@pytest.fixture(scope="module")
def complex_(structures_dir) -> Residues:
    return clean(load_structure(structures_dir / "1jk9.bcif"))


def renumbered(residues: Residues, shift: int) -> Residues:
    return replace(residues, res_id=residues.res_id + shift)


def test_equal_numbers_and_insertion_codes_correspond(crambin):
    code = np.where(np.arange(len(crambin)) == 4, "A", "")
    other = replace(crambin, ins_code=code).select(np.arange(len(crambin)) != 7)
    found = match_residues(other, crambin)
    assert found.reference.tolist() == [i for i in range(46) if i not in (4, 7)]
    assert other.res_id[found.model].tolist() == crambin.res_id[found.reference].tolist()
    assert found.same_type == found.known_types == 44


def test_one_chain_each_is_compared_whatever_the_names(crambin):
    other = replace(crambin, chain=np.full(46, "X"))
    assert match_residues(other, crambin).chains == {"X": "A"}
    assert len(match_residues(other, crambin).model) == 46


def test_shifted_numbers_correspond_by_sequence(crambin):
    shifted = renumbered(crambin, 100).select(np.arange(46) != 20)
    with pytest.raises(SelectionError, match="101 to 146"):
        match_residues(shifted, crambin)
    found = match_residues(shifted, crambin, by="sequence")
    assert found.reference.tolist() == [i for i in range(46) if i != 20] and found.same_type == 45


def test_a_shift_by_one_is_seen_by_the_types(crambin):
    found = match_residues(renumbered(crambin, 1), crambin)
    assert len(found.model) == 45 and found.same_type < 0.5 * found.known_types


def test_chains_of_equal_names_correspond_or_those_given(complex_):
    names = complex_.chain_names
    assert match_residues(complex_, complex_).chains == {name: name for name in names}
    found = match_residues(complex_, complex_, chains={"A": "C"})
    assert found.chains == {"A": "C"}
    assert set(complex_.chain[found.model]) == {"A"} and set(complex_.chain[found.reference]) == {"C"}


def test_chains_that_do_not_exist_or_are_named_twice_are_refused(crambin, complex_):
    with pytest.raises(SelectionError, match="'Z'"):
        match_residues(complex_, complex_, chains={"A": "Z"})
    with pytest.raises(OptionError, match="twice"):
        match_residues(complex_, complex_, chains={"A": "C", "B": "C"})
    with pytest.raises(SelectionError, match="no common name"):
        match_residues(replace(crambin, chain=np.full(46, "X")), complex_)
    with pytest.raises(OptionError, match="number, sequence"):
        match_residues(crambin, crambin, by="name")
