"""MACE on proteins."""

from __future__ import annotations

from protgraph_plugins.mace.family import FAMILY

__all__ = ["FAMILY"]
