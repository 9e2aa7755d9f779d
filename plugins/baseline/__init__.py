"""Baselines without structure: majority class and sequence window."""

from __future__ import annotations

from protgraph_plugins.baseline.family import MAJORITY, SEQUENCE_MLP

__all__ = ["MAJORITY", "SEQUENCE_MLP"]
