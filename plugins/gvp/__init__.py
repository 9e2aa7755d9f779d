"""Geometric vector perceptrons on proteins; see :mod:`protgraph_plugins.gvp.family`."""

from __future__ import annotations

from protgraph_plugins.gvp.family import FAMILY

__all__ = ["FAMILY"]
