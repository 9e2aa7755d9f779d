"""Arrays of designs and scores of several proteins, concatenated and split by ``ptr``."""

from __future__ import annotations

import numpy as np
import pytest
from protgraph_plugins.design import design_sequences, score_sequences, write_designs, write_scores


@pytest.fixture(scope="module")
def proteins(two_chains):
    return [two_chains, two_chains.chains(["A"])]


@pytest.mark.parametrize("details", [False, True])
def test_ptr_delimits_the_residues_of_each_design(model, proteins, tmp_path, details):
    designs = list(design_sequences(model, proteins, copies=2, temperature=[0.1, 0.2], details=details))
    with np.load(write_designs(tmp_path / "new" / "d.npz", designs)) as z:
        arrays = dict(z)
    assert arrays["ptr"].tolist() == [0, 19, 29] and arrays["temperature"].tolist() == [0.1, 0.1, 0.2, 0.2]
    assert arrays["residues"].tolist() == [*proteins[0].ids, *proteins[1].ids]
    for number, design in enumerate(designs):
        rows = slice(*arrays["ptr"][number : number + 2])
        assert np.array_equal(arrays["aatype"][:, rows], design.aatype)
        assert np.array_equal(arrays["native"][rows], design.residues.aatype)
        assert np.array_equal(arrays["designed"][rows], design.designed)
        for name in ("score", "global_score", "recovery"):
            assert np.array_equal(arrays[name][:, number], getattr(design, name))
        assert arrays["native_score"][number] == design.native_score
        assert ("log_probs" in arrays) == details
        if details:
            assert np.array_equal(arrays["probabilities"][:, rows], design.probabilities)


def test_ptr_delimits_the_residues_of_each_scored_sequence(model, proteins, tmp_path):
    scores = list(score_sequences(model, proteins, mode="unconditional"))
    with np.load(write_scores(tmp_path / "s.npz", scores)) as z:
        arrays = dict(z)
    assert arrays["ptr"].tolist() == [0, 19, 29] and arrays["sequences"].tolist() == ["", ""]
    assert np.array_equal(arrays["log_probs"][19:], scores[1].log_probs)
    assert np.array_equal(arrays["aatype"][:19], proteins[0].aatype)
