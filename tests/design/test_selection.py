"""Words select the residues that they say, and what is not there is told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from protgraph.design.selection import Tie, select_residues, parse_tie, parse_ties
from protgraph.errors import OptionError, SelectionError


def rows(residues, words):
    return np.flatnonzero(select_residues(residues, words)).tolist()


@pytest.mark.parametrize(
    "words, want",
    [
        ("B", range(10, 19)),
        ("A:5", [4]),
        ("A:5A", [5]),
        ("A:4-5", [3, 4, 5]),
        ("A:5A-7, B:1", [5, 6, 7, 10]),
        ("A:8-", [8, 9]),
        ("A:5A-", [5, 6, 7, 8, 9]),
        ("B:-3-2", [10, 11]),
        ("", []),
    ],
)
def test_selections_are_chains_residues_and_ranges(two_chains, words, want):
    assert rows(two_chains, words) == list(want)


@pytest.mark.parametrize(
    "words, error, told",
    [
        ("C", SelectionError, "'C' is of no chain here; chains: 'A', 'B'"),
        ("A:77", SelectionError, "no residue 'A:77'; chain 'A' has 10, 1 to 9"),
        ("A:20-30", SelectionError, "no residue 'A:20-30'; chain 'A' has 10, 1 to 9"),
        ("A:3-900", SelectionError, "'A:3-900' goes on behind chain 'A', which ends at 9: write 'A:3-' for all from 3"),
        ("A:5A-10", SelectionError, "write 'A:5A-' for all from 5A on"),
        ("A:7-3", OptionError, "'A:7-3' ends before it begins"),
        ("A:x", OptionError, "'A:x' is no selection: give a chain 'A', a residue"),
        ("A:", OptionError, "'A:' is no selection"),
    ],
)
def test_what_is_not_there_is_told(two_chains, words, error, told):
    with pytest.raises(error, match=told):
        select_residues(two_chains, words)


def test_the_ends_of_a_range_may_be_in_gaps_and_before_the_first_resolved_residue(two_chains):
    gapped = two_chains.select(~np.isin(two_chains.res_id, (1, 2, 5, 6)))
    assert [gapped.ids[n] for n in rows(gapped, "A:1-6")] == ["A:3", "A:4"]
    assert [gapped.ids[n] for n in rows(gapped, "A:5-7")] == ["A:7"]
    with pytest.raises(SelectionError, match="no residue 'A:5-6'"):
        select_residues(gapped, "A:5-6")


def test_a_chain_without_a_name_is_selected_by_its_numbers(two_chains):
    nameless = replace(two_chains.chains(["A"]), chain=np.full(10, ""))
    assert rows(nameless, ":8-") == [8, 9]


def test_chains_are_tied_by_number_and_ranges_one_by_one(two_chains):
    assert parse_tie(two_chains, "A,B") == [Tie((k, k + 10), (1.0, 1.0)) for k in range(9)]
    triple = parse_tie(two_chains, "A:1-2,A:8-9,B:1-2")
    assert [tie.rows for tie in triple] == [(0, 8, 10), (1, 9, 11)]
    weighted = parse_tie(two_chains, "A=1,B = -0.5")
    assert weighted[3] == Tie((3, 13), (1.0, -0.5))


@pytest.mark.parametrize(
    "words, error, told",
    [
        ("A:1-2,B:1-3", OptionError, "not equally long: A:1-2 has 2, B:1-3 has 3"),
        ("A:1-,B:1-", OptionError, "not equally long: A:1- has 10, B:1- has 9"),
        ("A", OptionError, "two parts or more"),
        ("A,C", SelectionError, "'C' is of no chain here"),
        ("A:1-900,B:1-9", SelectionError, "ends at 9: write 'A:1-'"),
        ("A=much,B", OptionError, "the weight is a number"),
        ("A=nan,B", OptionError, "the weight is a number"),
    ],
)
def test_wrong_ties_are_told(two_chains, words, error, told):
    with pytest.raises(error, match=told):
        parse_tie(two_chains, words)


def test_chains_without_a_number_in_common_are_not_tied_silently(two_chains):
    apart = replace(two_chains, res_id=two_chains.res_id + np.where(two_chains.chain == "B", 100, 0))
    with pytest.raises(OptionError, match="no residue number in common; tie ranges.*'A:1-9,B:101-108'"):
        parse_tie(apart, "A,B")


def test_no_residue_is_tied_twice(two_chains):
    assert len(parse_ties(two_chains, ["A:1,B:1", "A:2,B:2"])) == 2
    with pytest.raises(OptionError, match="A:1 is tied twice, in 'A,B' and 'A:1,A:3'"):
        parse_ties(two_chains, ["A,B", "A:1,A:3"])
    with pytest.raises(OptionError, match="A:1 is tied twice, in 'A,A'"):
        parse_ties(two_chains, ["A,A"])
