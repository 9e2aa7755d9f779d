"""Arrays of several proteins are joined by residues, and each is found again by ptr."""

from __future__ import annotations

import numpy as np
import pytest

from protgraph.data.datasets.target import Target
from protgraph.design import design_sequences, score_sequences, write_designs, write_scores
from protgraph.model import build_model
from protgraph.structure import ALPHABET

TARGET = Target("residue_type", "node", "classification", 21, tuple(ALPHABET))


@pytest.fixture(scope="module")
def model():
    return build_model("proteinmpnn.small", TARGET, seed=0).eval()


@pytest.fixture(scope="module")
def proteins(two_chains):
    return [two_chains, two_chains.chains(["A"])]


@pytest.mark.parametrize("details", [False, True])
def test_designs_are_found_by_ptr(model, proteins, tmp_path, details):
    made = list(design_sequences(model, proteins, copies=2, temperature=[0.1, 0.2], details=details))
    with np.load(write_designs(tmp_path / "new" / "d.npz", made)) as z:
        found = dict(z)
    assert found["ptr"].tolist() == [0, 19, 29] and found["temperature"].tolist() == [0.1, 0.1, 0.2, 0.2]
    assert found["residues"].tolist() == [*proteins[0].ids, *proteins[1].ids]
    for number, one in enumerate(made):
        rows = slice(*found["ptr"][number : number + 2])
        assert np.array_equal(found["aatype"][:, rows], one.aatype)
        assert np.array_equal(found["native"][rows], one.residues.aatype)
        assert np.array_equal(found["designed"][rows], one.designed)
        for name in ("score", "global_score", "recovery"):
            assert np.array_equal(found[name][:, number], getattr(one, name))
        assert found["native_score"][number] == one.native_score
        assert ("log_probs" in found) == details
        if details:
            assert np.array_equal(found["probabilities"][:, rows], one.probabilities)


def test_scores_are_found_by_ptr(model, proteins, tmp_path):
    told = list(score_sequences(model, proteins, mode="unconditional"))
    with np.load(write_scores(tmp_path / "s.npz", told)) as z:
        found = dict(z)
    assert found["ptr"].tolist() == [0, 19, 29] and found["sequences"].tolist() == ["", ""]
    assert np.array_equal(found["log_probs"][19:], told[1].log_probs)
    assert np.array_equal(found["aatype"][:19], proteins[0].aatype)
