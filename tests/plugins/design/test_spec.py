"""Design options as constraints of one protein, and errors of options that do not fit."""

from __future__ import annotations

import pytest
import torch
from protgraph_plugins.design import DesignSpec

from protgraph.errors import OptionError, SelectionError


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("chain,res_id,ins_code,A,C\nA,5,A,0.25,0.75\nB,1,,1,\n")
    return path


def write_table(tmp_path, text):
    path = tmp_path / "other.csv"
    path.write_text(text)
    return path


def test_options_become_constraints(two_chains, table):
    spec = DesignSpec(chains=("A",), fixed="A:1-3", omit="cm", bias="A=-1.5,P=0.5", pssm=table, pssm_weight=0.4)
    constraints = spec.constraints(two_chains)
    assert constraints.designed.nonzero().flatten().tolist() == list(range(3, 10))
    assert constraints.omit.nonzero().flatten().tolist() == [1, 10, 20]  # X too
    assert constraints.bias[0] == -1.5 and constraints.bias[12] == 0.5 and constraints.bias.abs().sum() == 2.0
    assert constraints.pssm[5, 1] == 0.75 and constraints.pssm[10, 0] == 1.0 and constraints.pssm.sum() == 2.0
    assert constraints.pssm_weight.nonzero().flatten().tolist() == [5, 10]  # the others use the model only
    assert constraints.pssm_weight[5] == 0.4
    tied = DesignSpec(tied=("A=1,B=-0.5",)).constraints(two_chains)
    assert tied.groups[0] == (0, 10) and tied.tie_weight.tolist() == [1.0] * 10 + [-0.5] * 9
    assert DesignSpec().constraints(two_chains).omit.nonzero().flatten().tolist() == [20]
    assert DesignSpec().constraints(two_chains, 20).omit is None


def test_letters_and_tables_are_combined(two_chains, table, tmp_path):
    constraints = DesignSpec(bias=f"A=-1, {table}").constraints(two_chains)
    want = torch.zeros(19, 21, dtype=torch.float64)
    want[:, 0] = -1
    want[5, 0], want[5, 1], want[10, 0] = -0.75, 0.75, 0.0
    assert torch.equal(constraints.bias, want)
    marks = write_table(tmp_path, "chain,res_id,A,P\nA,2-4,,1\nB,3,0,1\n")
    omit = DesignSpec(omit=f"C,{marks}").constraints(two_chains).omit
    assert omit[:, 1].all() and omit[:, 20].all() and not omit[:, 0].any()
    assert omit[:, 12].nonzero().flatten().tolist() == [1, 2, 3, 12]


def test_types_with_log_odds_up_to_the_threshold_are_unlikely(two_chains, tmp_path):
    odds = write_table(tmp_path, "chain,res_id,A,C,D\nA,1,-2,0.5,\nA,2,0.5,0.4,3\n")
    unlikely = DesignSpec(pssm_log_odds=odds, pssm_threshold=0.5).constraints(two_chains).unlikely
    assert unlikely.nonzero().tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]  # empty cells have no effect


def test_rounded_probabilities_are_normalized(two_chains, tmp_path):
    rounded = write_table(tmp_path, "chain,res_id,A,C,D\nA,1,0.33,0.33,0.33\n")
    constraints = DesignSpec(pssm=rounded).constraints(two_chains)
    torch.testing.assert_close(constraints.pssm[0, :3], torch.full((3,), 1 / 3, dtype=torch.float64))


@pytest.mark.parametrize(
    "text, in_message",
    [
        ("chain,res_id,A,C\nA,5,-3,1\n", "-3 .*A:5.*pssm_log_odds"),
        ("chain,res_id,A,C\nB,1,5,1\n", " 6 .*B:1"),
        ("chain,res_id,A,C\nB,1,0,0\n", " 0 .*B:1"),
    ],
)
def test_invalid_profiles_are_errors(two_chains, tmp_path, text, in_message):
    with pytest.raises(OptionError, match=in_message):
        DesignSpec(pssm=write_table(tmp_path, text)).constraints(two_chains)


@pytest.mark.parametrize(
    "options, in_message",
    [
        ({"omit": "AB"}, "omit: 'AB'"),
        ({"bias": "A"}, "bias: 'A'"),
        ({"bias": "A=much"}, "bias: 'A=much'"),
        ({"bias": "A=nan"}, "bias: 'A=nan'"),
        ({"bias": "A=-inf"}, "bias: 'A=-inf'"),
        ({"bias": "X=1"}, "bias: 'X=1'"),
        ({"pssm": "nowhere.csv"}, "nowhere.csv"),
        ({"pssm_log_odds": "nowhere.csv"}, "nowhere.csv"),
        ({"pssm_weight": 1.5}, "pssm_weight: 1.5"),
        ({"pssm_weight": float("nan")}, "pssm_weight: nan"),
        ({"pssm_threshold": float("nan")}, "pssm_threshold"),
    ],
)
def test_invalid_options_are_errors_at_construction(options, in_message):
    with pytest.raises(OptionError, match=in_message):
        DesignSpec(**options)


@pytest.mark.parametrize(
    "spec, error, in_message",
    [
        (DesignSpec(chains=("Z",)), SelectionError, "'Z'"),
        (DesignSpec(fixed="A,B"), OptionError, "1ubq"),
        (DesignSpec(omit="ACDEFGHIKLMNPQRSTVWY"), OptionError, "A:1 "),
        (DesignSpec(tied=("A,B",), fixed="B:5A"), OptionError, "A:5A .*B:5A"),
        (DesignSpec(tied=("A,B",), chains=("A",)), OptionError, "A:1 .*B:1"),
    ],
)
def test_options_that_do_not_fit_a_protein_are_errors(two_chains, spec, error, in_message):
    with pytest.raises(error, match=in_message):
        spec.constraints(two_chains)


def test_omitting_all_types_of_tied_residues_or_of_a_profile_is_an_error(two_chains, tmp_path):
    letters = "ACDEFGHIKLMNPQRSTVWY"
    half = [letters[:10], letters[10:]]
    rows = [",".join(["A" if n == 0 else "B", "3", *("1" if a in half[n] else "" for a in letters)]) for n in (0, 1)]
    marks = write_table(tmp_path, "\n".join([",".join(["chain", "res_id", *letters]), *rows]))
    assert DesignSpec(omit=str(marks)).constraints(two_chains).omit.sum() == 20 + 19
    with pytest.raises(OptionError, match="A:3 "):
        DesignSpec(omit=str(marks), tied=("A,B",)).constraints(two_chains)
    only = tmp_path / "only.csv"
    only.write_text("chain,res_id,C\nA,7,1\n")
    with pytest.raises(OptionError, match="A:7 "):
        DesignSpec(omit="C", pssm=only, pssm_weight=1.0).constraints(two_chains)
    with pytest.raises(OptionError, match=" 2 .*A:7"):
        DesignSpec(omit=str(write_table(tmp_path, "chain,res_id,C\nA,7,2\n"))).constraints(two_chains)
