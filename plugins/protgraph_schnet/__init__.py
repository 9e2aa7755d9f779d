"""Continuous-filter convolutions on proteins; see :mod:`protgraph_schnet.family`."""

from __future__ import annotations

from protgraph_schnet.family import FAMILY

__all__ = ["FAMILY"]
