"""Probabilities from which types are drawn are what the wishes say, at every temperature."""

from __future__ import annotations

import math

import pytest
import torch

from protgraph.design import Constraints
from protgraph.errors import OptionError

EVERY = torch.ones(2, dtype=torch.bool)
FIRST = torch.tensor([0])


def p_of(logits, temperature, **wishes):
    return Constraints(EVERY, **wishes).probabilities(torch.tensor([logits]), FIRST, temperature)[0]


@pytest.mark.parametrize("temperature", [1e-45, 1e-30, 1e-8, 1e-3, 0.0])
def test_no_temperature_is_too_low_for_omitted_types_or_for_the_floating_type(temperature):
    p = p_of([1.0, 9.0, 3.0, 2.0], temperature, omit=torch.tensor([False, True, False, False]))
    assert p.dtype == torch.float32
    assert p.tolist() == [0, 0, 1, 0]


def test_wishes_are_applied_in_the_order_that_is_stated():
    logits, t = [0.3, -1.0, 2.0, 0.5], 0.7
    bias, pssm = [0.0, 2.0, -1.0, 0.0], [0.1, 0.2, 0.3, 0.4]
    want = [math.exp((x + b) / t) for x, b in zip(logits, bias, strict=True)]
    want[0] = 0.0
    want = [0.75 * x / sum(want) + 0.25 * q for x, q in zip(want, pssm, strict=True)]
    want = [0.0, want[1] * 1.001, want[2] * 0.001, want[3] * 1.001]
    found = p_of(
        logits,
        t,
        bias=torch.tensor(bias),
        omit=torch.tensor([True, False, False, False]),
        pssm=torch.tensor([pssm, pssm]),
        pssm_weight=torch.tensor([0.25, 0.0]),
        unlikely=torch.tensor([[False, False, True, False]] * 2),
    )
    torch.testing.assert_close(found, torch.tensor([x / sum(want) for x in want]))


def test_tied_residues_share_what_is_wished_of_any_of_them():
    omit = torch.tensor([[True, False, False], [False, True, False], [False, False, True]])
    made = Constraints(
        torch.ones(3, dtype=torch.bool),
        omit=omit,
        bias=torch.tensor([[1.0, 0.0, 0.0], [3.0, 0.0, 6.0], [5.0, 5.0, 5.0]]),
        pssm=torch.tensor([[0.0, 0.0, 0.0], [0.2, 0.2, 0.6], [1.0, 0.0, 0.0]]),
        pssm_weight=torch.tensor([0.0, 0.5, 0.5]),
        groups=[[0, 1]],
    ).shared()
    assert made.omit.tolist() == [[True, True, False], [True, True, False], [False, False, True]]
    assert made.bias.tolist() == [[2.0, 0.0, 3.0], [2.0, 0.0, 3.0], [5.0, 5.0, 5.0]]
    assert made.pssm_weight.tolist() == [0.25, 0.25, 0.5]
    torch.testing.assert_close(made.pssm[:2], torch.tensor([[0.2, 0.2, 0.6]] * 2))  # the first one wishes nothing
    alone = Constraints(EVERY, bias=torch.arange(3.0), groups=[[0, 1]]).shared()
    assert alone.bias.tolist() == [0, 1, 2]  # one row for all


@pytest.mark.parametrize(
    "wishes, told",
    [
        ({"bias": torch.tensor([0.0, math.nan])}, "a bias is a finite number"),
        ({"bias": torch.tensor([0.0, math.inf])}, "a bias is a finite number"),
        ({"pssm": torch.ones(2, 2) / 2, "pssm_weight": torch.tensor([0.5, math.nan])}, "pssm_weight lies from 0"),
        ({"omit": torch.tensor([[True, False], [True, True]])}, "every type is left out at residue 1"),
        (
            {
                "omit": torch.tensor([True, False]),
                "pssm": torch.tensor([[0.5, 0.5], [1.0, 0.0]]),
                "pssm_weight": torch.ones(2),
            },
            "every type is left out at residue 1",
        ),
    ],
)
def test_what_gives_no_probabilities_is_refused(wishes, told):
    with pytest.raises(OptionError, match=told):
        Constraints(EVERY, **wishes)
