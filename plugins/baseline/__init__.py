"""Baselines: majority class, residue type, number of neighbors, and sequence window."""

from __future__ import annotations

from protgraph_plugins.baseline.family import MAJORITY, NEIGHBOR_COUNT, RESIDUE_TYPE, SEQUENCE_MLP
from protgraph_plugins.baseline.window import Window

__all__ = ["MAJORITY", "NEIGHBOR_COUNT", "RESIDUE_TYPE", "SEQUENCE_MLP", "Window"]
