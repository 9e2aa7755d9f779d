"""Geometric vector perceptrons on proteins; see :mod:`protgraph_gvp.family`."""

from __future__ import annotations

from protgraph_gvp.family import FAMILY

__all__ = ["FAMILY"]
