"""A comparison that NaN, zeros and large neighbors cannot pass."""

from __future__ import annotations

import pytest
import torch

from protgraph.symmetry import ComparisonError, relative_error


def test_error_is_relative_to_the_largest_wanted_value():
    want = torch.tensor([[1.0, -8.0], [2.0, 4.0]])
    assert relative_error(want, want) == 0
    assert relative_error(want + 2, want) == 0.25


def test_each_block_is_held_to_its_own_scale():
    want = torch.tensor([[1e6, 1e-3, 0.0, 0.0]])
    got = torch.tensor([[1e6, 0.0, 1e-3, 0.0]])
    assert relative_error(got, want) < 1e-8
    assert relative_error(got, want, irreps="1x0e+1x1o") == 1


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_not_finite_values_are_refused_even_where_both_agree(bad):
    x = torch.tensor([1.0, bad])
    with pytest.raises(ComparisonError, match="NaN or infinite"):
        relative_error(x, x)


def test_zeros_are_refused_even_where_both_agree():
    with pytest.raises(ComparisonError, match="zero"):
        relative_error(torch.zeros(3), torch.zeros(3))
    with pytest.raises(ComparisonError, match="zero"):
        relative_error(torch.tensor([[1.0, 0.0, 0.0, 0.0]]), torch.tensor([[1.0, 0.0, 0.0, 0.0]]), irreps="0e+1o")
    with pytest.raises(ComparisonError, match="zero"):
        relative_error(torch.zeros(0, 3), torch.zeros(0, 3))


def test_shapes_must_agree():
    with pytest.raises(ComparisonError, match="shapes"):
        relative_error(torch.ones(3, 1), torch.ones(3))
