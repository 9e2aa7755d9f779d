"""Residue features against their formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from protgraph.errors import OptionError
from protgraph.featurize.residue_features import BFactor, ResidueOneHot, SequencePosition


def test_one_hot_is_one_at_the_type():
    one_hot = ResidueOneHot()({"aatype": torch.tensor([0, 20, 7])})["residue_one_hot"]
    assert one_hot.shape == (3, 21)
    assert one_hot.argmax(1).tolist() == [0, 20, 7]
    assert one_hot.sum() == 3


@pytest.mark.parametrize("dim", [2, 16, 30])
def test_sequence_position_equals_the_formula(dim):
    positions = [0, 1, 17, 999]
    featurizer = SequencePosition(dim=dim)
    assert featurizer.out["sequence_position"].irreps == f"{dim}x0e"
    code = featurizer({"seq_pos": torch.tensor(positions)})["sequence_position"]
    for row, p in zip(code.tolist(), positions, strict=True):
        for c in range(dim // 2):
            angle = p / 10000 ** (2 * c / dim)
            assert row[2 * c] == pytest.approx(math.sin(angle), abs=2e-4)  # float32 angles up to 999
            assert row[2 * c + 1] == pytest.approx(math.cos(angle), abs=2e-4)


def test_sequence_position_is_exact_in_float64(float64):
    code = SequencePosition()({"seq_pos": torch.tensor([4321])})["sequence_position"]
    expected = [f(4321 / 10000 ** (2 * c / 16)) for c in range(8) for f in (math.sin, math.cos)]
    assert code[0].tolist() == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("dim", [0, 3, -2, 4.0, "16"])
def test_odd_widths_of_sequence_position_raise(dim):
    with pytest.raises(OptionError, match="dim="):
        SequencePosition(dim=dim)


def test_b_factor_is_that_of_ca(proteins):
    for residues in proteins:
        b = BFactor()(residues)["b_factor"]
        assert b.shape == (len(residues), 1)
        assert b.dtype == np.float32
        assert np.array_equal(b[:, 0], residues.b_factor)
