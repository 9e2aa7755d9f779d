"""Rotations, reflections and translations of fields, and the relative error used in equivariance tests."""

from __future__ import annotations

from protgraph.symmetry.action import act, representation
from protgraph.symmetry.orthogonal_group import random_reflections, random_rotations
from protgraph.symmetry.relative_error import ComparisonError, relative_error

__all__ = ["ComparisonError", "act", "random_reflections", "random_rotations", "relative_error", "representation"]
