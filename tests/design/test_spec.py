"""Wishes become constraints of one protein, and what cannot be wished is told."""

from __future__ import annotations

import pytest
import torch

from protgraph.design import DesignSpec
from protgraph.errors import OptionError, SelectionError


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("chain,res_id,ins_code,A,C\nA,5,A,0.25,0.75\nB,1,,1,\n")
    return path


def written(tmp_path, text):
    path = tmp_path / "other.csv"
    path.write_text(text)
    return path


def test_wishes_become_constraints(two_chains, table):
    wish = DesignSpec(chains=("A",), fixed="A:1-3", omit="cm", bias="A=-1.5,P=0.5", pssm=table, pssm_weight=0.4)
    made = wish.constraints(two_chains)
    assert made.designed.nonzero().flatten().tolist() == list(range(3, 10))
    assert made.omit.nonzero().flatten().tolist() == [1, 10, 20]  # X too
    assert made.bias[0] == -1.5 and made.bias[12] == 0.5 and made.bias.abs().sum() == 2.0
    assert made.pssm[5, 1] == 0.75 and made.pssm[10, 0] == 1.0 and made.pssm.sum() == 2.0
    assert made.pssm_weight.nonzero().flatten().tolist() == [5, 10]  # the others go by the model
    assert made.pssm_weight[5] == 0.4
    tied = DesignSpec(tied=("A=1,B=-0.5",)).constraints(two_chains)
    assert tied.groups[0] == (0, 10) and tied.tie_weight.tolist() == [1.0] * 10 + [-0.5] * 9
    assert DesignSpec().constraints(two_chains).omit.nonzero().flatten().tolist() == [20]
    assert DesignSpec().constraints(two_chains, 20).omit is None


def test_words_and_tables_add_up(two_chains, table, tmp_path):
    made = DesignSpec(bias=f"A=-1, {table}").constraints(two_chains)
    want = torch.zeros(19, 21, dtype=torch.float64)
    want[:, 0] = -1
    want[5, 0], want[5, 1], want[10, 0] = -0.75, 0.75, 0.0
    assert torch.equal(made.bias, want)
    marks = written(tmp_path, "chain,res_id,A,P\nA,2-4,,1\nB,3,0,1\n")
    omit = DesignSpec(omit=f"C,{marks}").constraints(two_chains).omit
    assert omit[:, 1].all() and omit[:, 20].all() and not omit[:, 0].any()
    assert omit[:, 12].nonzero().flatten().tolist() == [1, 2, 3, 12]


def test_types_whose_log_odds_are_not_above_the_threshold_are_unlikely(two_chains, tmp_path):
    odds = written(tmp_path, "chain,res_id,A,C,D\nA,1,-2,0.5,\nA,2,0.5,0.4,3\n")
    unlikely = DesignSpec(pssm_log_odds=odds, pssm_threshold=0.5).constraints(two_chains).unlikely
    assert unlikely.nonzero().tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]  # an empty cell forbids nothing


def test_rounded_probabilities_are_made_to_add_up(two_chains, tmp_path):
    rounded = written(tmp_path, "chain,res_id,A,C,D\nA,1,0.33,0.33,0.33\n")
    made = DesignSpec(pssm=rounded).constraints(two_chains)
    torch.testing.assert_close(made.pssm[0, :3], torch.full((3,), 1 / 3, dtype=torch.float64))


@pytest.mark.parametrize(
    "text, told",
    [
        ("chain,res_id,A,C\nA,5,-3,1\n", "-3 at A:5 is no probability; a table of log-odds is for pssm_log_odds"),
        ("chain,res_id,A,C\nB,1,5,1\n", "the probabilities of B:1 add up to 6, not to 1; divide counts"),
        ("chain,res_id,A,C\nB,1,0,0\n", "the probabilities of B:1 add up to 0, not to 1"),
    ],
)
def test_a_profile_that_is_none_is_refused(two_chains, tmp_path, text, told):
    with pytest.raises(OptionError, match=told):
        DesignSpec(pssm=written(tmp_path, text)).constraints(two_chains)


@pytest.mark.parametrize(
    "options, told",
    [
        ({"omit": "AB"}, "omit 'AB': give letters of ACDEFGHIKLMNPQRSTVWYX, or the file of a table"),
        ({"bias": "A"}, "bias 'A': give a letter and a number"),
        ({"bias": "A=much"}, "give a letter and a number"),
        ({"bias": "A=nan"}, "give a letter and a number"),
        ({"bias": "A=-inf"}, "give a letter and a number"),
        ({"bias": "X=1"}, "give a letter and a number"),
        ({"pssm": "nowhere.csv"}, "'nowhere.csv' cannot be read"),
        ({"pssm_log_odds": "nowhere.csv"}, "'nowhere.csv' cannot be read"),
        ({"pssm_weight": 1.5}, "pssm_weight=1.5: from 0"),
        ({"pssm_weight": float("nan")}, "pssm_weight=nan"),
        ({"pssm_threshold": float("nan")}, "pssm_threshold is no number"),
    ],
)
def test_what_cannot_be_read_is_told_before_there_is_a_protein(options, told):
    with pytest.raises(OptionError, match=told):
        DesignSpec(**options)


@pytest.mark.parametrize(
    "wish, error, told",
    [
        (DesignSpec(chains=("Z",)), SelectionError, "no chain 'Z'"),
        (DesignSpec(fixed="A,B"), OptionError, "no residue is left to design"),
        (DesignSpec(omit="ACDEFGHIKLMNPQRSTVWY"), OptionError, "omit leaves no type to be chosen at A:1"),
        (DesignSpec(tied=("A,B",), fixed="B:5A"), OptionError, "A:5A is to be designed, and B:5A, tied to it, is to stay"),
        (DesignSpec(tied=("A,B",), chains=("A",)), OptionError, "A:1 is to be designed, and B:1, tied to it"),
    ],
)
def test_wrong_wishes_are_told(two_chains, wish, error, told):
    with pytest.raises(error, match=told):
        wish.constraints(two_chains)


def test_what_leaves_no_type_between_tied_residues_or_beside_a_profile_is_told(two_chains, tmp_path):
    letters = "ACDEFGHIKLMNPQRSTVWY"
    half = [letters[:10], letters[10:]]
    rows = [",".join(["A" if n == 0 else "B", "3", *("1" if a in half[n] else "" for a in letters)]) for n in (0, 1)]
    marks = written(tmp_path, "\n".join([",".join(["chain", "res_id", *letters]), *rows]))
    assert DesignSpec(omit=str(marks)).constraints(two_chains).omit.sum() == 20 + 19
    with pytest.raises(OptionError, match="omit leaves no type to be chosen at A:3"):
        DesignSpec(omit=str(marks), tied=("A,B",)).constraints(two_chains)
    only = tmp_path / "only.csv"
    only.write_text("chain,res_id,C\nA,7,1\n")
    with pytest.raises(OptionError, match="omit leaves no type to be chosen at A:7"):
        DesignSpec(omit="C", pssm=only, pssm_weight=1.0).constraints(two_chains)
    with pytest.raises(OptionError, match="2 at A:7; 1 is a type that is not to be chosen"):
        DesignSpec(omit=str(written(tmp_path, "chain,res_id,C\nA,7,2\n"))).constraints(two_chains)
