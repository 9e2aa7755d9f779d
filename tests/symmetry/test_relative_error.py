"""Relative error: scale per block; NaN and zeros raise."""

from __future__ import annotations

import pytest
import torch

from protgraph.symmetry import ComparisonError, relative_error


def test_error_is_relative_to_the_largest_expected_value():
    expected = torch.tensor([[1.0, -8.0], [2.0, 4.0]])
    assert relative_error(expected, expected) == 0
    assert relative_error(expected + 2, expected) == 0.25


def test_each_block_has_its_own_scale():
    expected = torch.tensor([[1e6, 1e-3, 0.0, 0.0]])
    actual = torch.tensor([[1e6, 0.0, 1e-3, 0.0]])
    assert relative_error(actual, expected) < 1e-8
    assert relative_error(actual, expected, irreps="1x0e+1x1o") == 1


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_equal_non_finite_values_raise(bad):
    x = torch.tensor([1.0, bad])
    with pytest.raises(ComparisonError, match="NaN"):
        relative_error(x, x)


def test_equal_zeros_raise():
    with pytest.raises(ComparisonError, match="zero"):
        relative_error(torch.zeros(3), torch.zeros(3))
    with pytest.raises(ComparisonError, match="zero"):
        relative_error(torch.tensor([[1.0, 0.0, 0.0, 0.0]]), torch.tensor([[1.0, 0.0, 0.0, 0.0]]), irreps="0e+1o")
    with pytest.raises(ComparisonError, match="zero"):
        relative_error(torch.zeros(0, 3), torch.zeros(0, 3))


def test_different_shapes_raise():
    with pytest.raises(ComparisonError, match=r"\(3, 1\)"):
        relative_error(torch.ones(3, 1), torch.ones(3))
