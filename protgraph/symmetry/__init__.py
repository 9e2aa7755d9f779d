"""Rotations, reflections and translations acting on fields, and the measure of agreement that tests of them use."""

from __future__ import annotations

from protgraph.symmetry.action import act, representation
from protgraph.symmetry.compare import ComparisonError, relative_error
from protgraph.symmetry.group import random_reflections, random_rotations

__all__ = ["ComparisonError", "act", "random_reflections", "random_rotations", "relative_error", "representation"]
