"""Relational networks over typed edges on proteins; see :mod:`protgraph_plugins.gearnet.family`."""

from __future__ import annotations

from protgraph_plugins.gearnet.family import EDGE_FAMILY, FAMILY

__all__ = ["EDGE_FAMILY", "FAMILY"]
