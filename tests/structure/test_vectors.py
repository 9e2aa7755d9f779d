"""Lengths and directions of vectors."""

from __future__ import annotations

import numpy as np

from protgraph.structure.vectors import angle, cross, length, squared, unit


def test_unit_vectors_have_length_one_or_zero():
    v = np.array([[3.0, 4.0, 0.0], [0, 0, 0], [np.nan, 1, 1], [1e-30, 0, 0]])
    assert unit(v).tolist() == [[0.6, 0.8, 0.0], [0, 0, 0], [0, 0, 0], [1, 0, 0]]


def test_lengths_equal_the_norm_of_numpy():
    v = np.random.default_rng(0).normal(size=(50, 4, 3))
    np.testing.assert_allclose(length(v), np.linalg.norm(v, axis=-1), rtol=1e-15)
    assert np.array_equal(squared(v), v[..., 0] ** 2 + v[..., 1] ** 2 + v[..., 2] ** 2)


def test_angles_equal_the_arc_cosine_and_are_undefined_for_zero_and_missing_vectors():
    u, v = np.random.default_rng(1).normal(size=(2, 50, 3))
    np.testing.assert_allclose(angle(u, v), np.arccos((unit(u) * unit(v)).sum(1)), rtol=1e-9)
    small = np.array([[1.0, 1e-9, 0.0]])  # the cosine is 1 in float64
    np.testing.assert_allclose(angle(np.array([[1.0, 0.0, 0.0]]), small), 1e-9, rtol=1e-12)
    u[0], v[1] = 0, np.nan
    assert np.flatnonzero(np.isnan(angle(u, v))).tolist() == [0, 1]


def test_cross_products_equal_those_of_numpy_bit_for_bit():
    u, v = np.random.default_rng(2).normal(size=(2, 40, 5, 3))
    u[3], v[4] = np.nan, 0.0
    np.testing.assert_array_equal(cross(u, v), np.cross(u, v))
    np.testing.assert_array_equal(cross(u, v[0, 0]), np.cross(u, v[0, 0]))
