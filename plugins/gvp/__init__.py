"""Geometric vector perceptrons on proteins."""

from __future__ import annotations

from protgraph_plugins.gvp.family import FAMILY

__all__ = ["FAMILY"]
