"""Sampling probabilities under constraints, at every temperature."""

from __future__ import annotations

import math

import pytest
import torch
from protgraph_plugins.design import Constraints

from protgraph.errors import OptionError

EVERY = torch.ones(2, dtype=torch.bool)
FIRST = torch.tensor([0])


def p_of(logits, temperature, **options):
    return Constraints(EVERY, **options).probabilities(torch.tensor([logits]), FIRST, temperature)[0]


@pytest.mark.parametrize("temperature", [1e-45, 1e-30, 1e-8, 1e-3, 0.0])
def test_low_temperatures_neither_overflow_nor_allow_omitted_types(temperature):
    p = p_of([1.0, 9.0, 3.0, 2.0], temperature, omit=torch.tensor([False, True, False, False]))
    assert p.dtype == torch.float32
    assert p.tolist() == [0, 0, 1, 0]


def test_constraints_are_applied_in_the_documented_order():
    logits, t = [0.3, -1.0, 2.0, 0.5], 0.7
    bias, pssm = [0.0, 2.0, -1.0, 0.0], [0.1, 0.2, 0.3, 0.4]
    want = [math.exp((x + b) / t) for x, b in zip(logits, bias, strict=True)]
    want[0] = 0.0
    want = [0.75 * x / sum(want) + 0.25 * q for x, q in zip(want, pssm, strict=True)]
    want = [0.0, want[1] * 1.001, want[2] * 0.001, want[3] * 1.001]
    p = p_of(
        logits,
        t,
        bias=torch.tensor(bias),
        omit=torch.tensor([True, False, False, False]),
        pssm=torch.tensor([pssm, pssm]),
        pssm_weight=torch.tensor([0.25, 0.0]),
        unlikely=torch.tensor([[False, False, True, False]] * 2),
    )
    torch.testing.assert_close(p, torch.tensor([x / sum(want) for x in want]))


def test_tied_residues_share_their_constraints():
    omit = torch.tensor([[True, False, False], [False, True, False], [False, False, True]])
    shared = Constraints(
        torch.ones(3, dtype=torch.bool),
        omit=omit,
        bias=torch.tensor([[1.0, 0.0, 0.0], [3.0, 0.0, 6.0], [5.0, 5.0, 5.0]]),
        pssm=torch.tensor([[0.0, 0.0, 0.0], [0.2, 0.2, 0.6], [1.0, 0.0, 0.0]]),
        pssm_weight=torch.tensor([0.0, 0.5, 0.5]),
        groups=[[0, 1]],
    ).shared()
    assert shared.omit.tolist() == [[True, True, False], [True, True, False], [False, False, True]]
    assert shared.bias.tolist() == [[2.0, 0.0, 3.0], [2.0, 0.0, 3.0], [5.0, 5.0, 5.0]]
    assert shared.pssm_weight.tolist() == [0.25, 0.25, 0.5]
    torch.testing.assert_close(shared.pssm[:2], torch.tensor([[0.2, 0.2, 0.6]] * 2))  # the first residue has weight 0
    alone = Constraints(EVERY, bias=torch.arange(3.0), groups=[[0, 1]]).shared()
    assert alone.bias.tolist() == [0, 1, 2]  # one row for all


@pytest.mark.parametrize(
    "options, in_message",
    [
        ({"bias": torch.tensor([0.0, math.nan])}, "bias"),
        ({"bias": torch.tensor([0.0, math.inf])}, "bias"),
        ({"pssm": torch.ones(2, 2) / 2, "pssm_weight": torch.tensor([0.5, math.nan])}, "pssm_weight"),
        ({"omit": torch.tensor([[True, False], [True, True]])}, "residue 1"),
        (
            {
                "omit": torch.tensor([True, False]),
                "pssm": torch.tensor([[0.5, 0.5], [1.0, 0.0]]),
                "pssm_weight": torch.ones(2),
            },
            "residue 1",
        ),
    ],
)
def test_constraints_without_valid_probabilities_are_errors(options, in_message):
    with pytest.raises(OptionError, match=in_message):
        Constraints(EVERY, **options)
