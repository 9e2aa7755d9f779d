"""MACE on proteins; see :mod:`protgraph_mace.family`."""

from __future__ import annotations

from protgraph_mace.family import FAMILY

__all__ = ["FAMILY"]
