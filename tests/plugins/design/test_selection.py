"""Selections of residues and ties: syntax, ranges in gaps, and errors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from protgraph_plugins.design.selection import Tie, parse_tie, parse_ties, select_residues

from protgraph.errors import OptionError, SelectionError


def rows(residues, selection):
    return np.flatnonzero(select_residues(residues, selection)).tolist()


@pytest.mark.parametrize(
    "selection, expected",
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
def test_selections_are_chains_residues_and_ranges(two_chains, selection, expected):
    assert rows(two_chains, selection) == list(expected)


@pytest.mark.parametrize(
    "selection, error, in_message",
    [
        ("C", SelectionError, ["'C'", "'A', 'B'"]),
        ("A:77", SelectionError, ["'A:77'", "10 residues", "1 to 9"]),
        ("A:20-30", SelectionError, ["'A:20-30'", "10 residues", "1 to 9"]),
        ("A:3-900", SelectionError, ["'A:3-900'", "at 9", "'A:3-'"]),
        ("A:5A-10", SelectionError, ["'A:5A-10'", "'A:5A-'"]),
        ("A:7-3", OptionError, ["'A:7-3'"]),
        ("A:x", OptionError, ["'A:x'", "'A:10-20'"]),
        ("A:", OptionError, ["'A:'"]),
    ],
)
def test_invalid_selections_are_errors_with_the_allowed_range(two_chains, selection, error, in_message):
    with pytest.raises(error) as e:
        select_residues(two_chains, selection)
    assert all(data in str(e.value) for data in in_message)


@pytest.mark.parametrize("selection", ["4-5", "8-", "5A", "5A-7, 1", "7", "3-5,9"])
def test_numbers_alone_are_of_the_only_chain(two_chains, selection):
    one_chain = two_chains.select(two_chains.chain == "A")
    with_chain = ",".join(f"A:{part.strip()}" for part in selection.split(","))
    assert rows(one_chain, selection) == rows(one_chain, with_chain) != []
    with pytest.raises(SelectionError) as e:
        select_residues(two_chains, selection)
    assert f"'A:{selection.split(',')[0]}'" in str(e.value)


def test_a_chain_whose_name_is_a_number_has_priority(two_chains):
    named = replace(two_chains, chain=np.where(two_chains.chain == "A", "4", two_chains.chain))
    assert rows(named, "4") == list(range(10))
    assert rows(named.select(named.chain == "4"), "4") == list(range(10))


def test_ties_of_numbers_alone_are_of_the_only_chain(two_chains):
    one_chain = two_chains.select(two_chains.chain == "A")
    assert parse_tie(one_chain, "1-2,8-9") == parse_tie(one_chain, "A:1-2,A:8-9")


IMGT = ["110", "111", "111A", "111B", "112B", "112A", "112", "113"]  # imgt.org: codes of 111 ascend, of 112 descend


@pytest.mark.parametrize(
    "left_out, selection, expected",
    [
        ((), "H:111A-112A", ["111A", "111B", "112B", "112A"]),
        ((), "H:111-112", ["111", "111A", "111B", "112B", "112A", "112"]),
        ((), "H:110-111", ["110", "111", "111A", "111B"]),
        ((), "H:112-113", ["112", "113"]),
        ((), "H:112B-112A", ["112B", "112A"]),
        ((), "H:112A-112", ["112A", "112"]),
        ((), "H:112A-", ["112A", "112", "113"]),
        ((), "H:112A", ["112A"]),
        ((), "H:112C-113", ["112B", "112A", "112", "113"]),
        (("112A",), "H:111B-112A", ["111B", "112B"]),
        (("112",), "H:111B-112", ["111B", "112B", "112A"]),
        (("112",), "H:112-113", ["113"]),
        (("111A",), "H:111A-112B", ["111B", "112B"]),
    ],
)
def test_ranges_follow_the_order_of_insertion_codes_in_the_chain(two_chains, left_out, selection, expected):
    names = [name for name in IMGT if name not in left_out]
    numbers = [int(name.rstrip("AB")) for name in names]
    codes = np.array([name.lstrip("0123456789") for name in names])
    residues = two_chains.select(np.arange(len(two_chains)) < len(names)).copy_with(
        chain=np.full(len(names), "H"), res_id=np.array(numbers), ins_code=codes
    )
    chosen = rows(residues, selection)
    assert [f"{residues.res_id[row]}{residues.ins_code[row]}" for row in chosen] == expected
    if not left_out:
        for wrong in ("H:112A-112B", "H:111B-111A", "H:112-111", "H:112A-111A"):
            with pytest.raises(OptionError, match=f"'{wrong}' ends before it begins"):
                select_residues(residues, wrong)


def test_the_ends_of_a_range_may_be_in_gaps_and_before_the_first_resolved_residue(two_chains):
    gapped = two_chains.select(~np.isin(two_chains.res_id, (1, 2, 5, 6)))
    assert [gapped.ids[n] for n in rows(gapped, "A:1-6")] == ["A:3", "A:4"]
    assert [gapped.ids[n] for n in rows(gapped, "A:5-7")] == ["A:7"]
    with pytest.raises(SelectionError, match="'A:5-6'"):
        select_residues(gapped, "A:5-6")


def test_a_chain_without_a_name_is_selected_by_its_numbers(two_chains):
    nameless = replace(two_chains.chains(["A"]), chain=np.full(10, ""))
    assert rows(nameless, ":8-") == [8, 9]


def test_chains_are_tied_by_number_and_ranges_in_order(two_chains):
    assert parse_tie(two_chains, "A,B") == [Tie((k, k + 10), (1.0, 1.0)) for k in range(9)]
    triple = parse_tie(two_chains, "A:1-2,A:8-9,B:1-2")
    assert [tie.rows for tie in triple] == [(0, 8, 10), (1, 9, 11)]
    weighted = parse_tie(two_chains, "A=1,B = -0.5")
    assert weighted[3] == Tie((3, 13), (1.0, -0.5))


@pytest.mark.parametrize(
    "spec, error, in_message",
    [
        ("A:1-2,B:1-3", OptionError, "A:1-2: 2, B:1-3: 3"),
        ("A:1-,B:1-", OptionError, "A:1-: 10, B:1-: 9"),
        ("A", OptionError, "'A'"),
        ("A,C", SelectionError, "'C'"),
        ("A:1-900,B:1-9", SelectionError, r"\b9\b.*'A:1-'"),
        ("A=much,B", OptionError, "'A=much'"),
        ("A=nan,B", OptionError, "'A=nan'"),
    ],
)
def test_invalid_ties_are_errors(two_chains, spec, error, in_message):
    with pytest.raises(error, match=in_message):
        parse_tie(two_chains, spec)


def test_tying_chains_without_a_common_number_is_an_error(two_chains):
    apart = replace(two_chains, res_id=two_chains.res_id + np.where(two_chains.chain == "B", 100, 0))
    with pytest.raises(OptionError, match="'A:1-9,B:101-108'"):
        parse_tie(apart, "A,B")


def test_a_residue_in_two_ties_is_an_error(two_chains):
    assert len(parse_ties(two_chains, ["A:1,B:1", "A:2,B:2"])) == 2
    with pytest.raises(OptionError, match="A:1 .*'A,B' and 'A:1,A:3'"):
        parse_ties(two_chains, ["A,B", "A:1,A:3"])
    with pytest.raises(OptionError, match="A:1 .*'A,A'"):
        parse_ties(two_chains, ["A,A"])
