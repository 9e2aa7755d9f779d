"""MACE on proteins; see :mod:`protgraph_plugins.mace.family`."""

from __future__ import annotations

from protgraph_plugins.mace.family import FAMILY

__all__ = ["FAMILY"]
