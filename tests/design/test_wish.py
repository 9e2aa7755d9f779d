"""Wishes in words and tables select what they say, and what they cannot is told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import protgraph as pg
from protgraph.design import Wish
from protgraph.design.wish import read_table, select, tied_groups
from protgraph.errors import OptionError, SelectionError


@pytest.fixture(scope="module")
def residues(structures_dir):
    """Two chains of 10 residues, numbers 1 to 10 with 5A between 5 and 6; B lacks the last one."""
    whole = pg.clean(pg.load_structure(structures_dir / "1ubq.bcif"))
    whole = whole.select(np.arange(len(whole)) < 19)
    number = np.array([1, 2, 3, 4, 5, 5, 6, 7, 8, 9] * 2)[:19]
    code = np.where(np.arange(20) % 10 == 5, "A", "")[:19]
    return replace(whole, chain=np.repeat(["A", "B"], 10)[:19], res_id=number, ins_code=code)


def test_selections_are_chains_residues_and_ranges(residues):
    def rows(words):
        return np.flatnonzero(select(residues, words)).tolist()

    assert rows("B") == list(range(10, 19))
    assert rows("A:5") == [4]
    assert rows("A:5A") == [5]
    assert rows("A:4-5") == [3, 4, 5]
    assert rows("A:5A-7, B:1") == [5, 6, 7, 10]
    assert rows("") == []
    for words in ("C", "A:77", "A:20-30"):
        with pytest.raises(SelectionError, match=f"no residue '{words}'"):
            select(residues, words)
    with pytest.raises(OptionError, match="'A:x' is no selection"):
        select(residues, "A:x")


def test_chains_are_tied_by_number_and_ranges_one_by_one(residues):
    groups = tied_groups(residues, "A,B")
    assert groups == [[k, k + 10] for k in range(9)]
    assert tied_groups(residues, "A:1-2,A:8-9,B:1-2") == [[0, 8, 10], [1, 9, 11]]
    with pytest.raises(OptionError, match="not equally long: A:1-2 has 2, B:1-3 has 3"):
        tied_groups(residues, "A:1-2,B:1-3")
    with pytest.raises(OptionError, match="two parts or more"):
        tied_groups(residues, "A")


def test_wishes_become_constraints(residues, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("chain,res_id,ins_code,A,C\nA,5,A,0.25,0.75\nB,1,,1,\n")
    wish = Wish(chains=("A",), fixed="A:1-3", omit="CX", bias="A=-1.5,P=0.5", pssm=table, pssm_weight=0.4)
    made = wish.constraints(residues)
    assert made.designed.nonzero().flatten().tolist() == list(range(3, 10))
    assert made.omit.nonzero().flatten().tolist() == [1, 20]
    assert made.bias[0] == -1.5 and made.bias[12] == 0.5 and made.bias.abs().sum() == 2.0
    assert made.pssm[5, 1] == 0.75 and made.pssm[10, 0] == 1.0
    assert made.pssm_weight.nonzero().flatten().tolist() == [5, 10]  # the others go by the model
    by_table = Wish(bias=str(table)).constraints(residues)
    assert torch.equal(by_table.bias, made.pssm)
    assert Wish(tied=("A,B",)).constraints(residues).groups[0] == [0, 10]


@pytest.mark.parametrize(
    "wish, error, words",
    [
        (Wish(chains=("Z",)), SelectionError, "no chain 'Z'"),
        (Wish(fixed="A,B"), OptionError, "no residue is left to design"),
        (Wish(omit="AB"), OptionError, "'B' in 'AB' is no residue type"),
        (Wish(bias="A"), OptionError, "give a letter and a number"),
        (Wish(pssm="nowhere.csv"), OptionError, "'nowhere.csv' cannot be read"),
    ],
)
def test_wrong_wishes_are_told(residues, wish, error, words):
    with pytest.raises(error, match=words):
        wish.constraints(residues)


def test_wrong_tables_are_told(residues, tmp_path):
    path = tmp_path / "table.csv"
    for text, error, words in (
        ("chain,A\nA,1\n", OptionError, "has the columns chain, res_id"),
        ("chain,res_id,A\nA,99,1\n", SelectionError, r"line 2: .* has no residue \('A', 99, ''\)"),
        ("chain,res_id,A\nA,1,much\n", OptionError, "line 2: could not convert"),
    ):
        path.write_text(text)
        with pytest.raises(error, match=words):
            read_table(path, residues, 21)
