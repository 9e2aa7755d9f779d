"""Continuous-filter convolutions on proteins; see :mod:`protgraph_plugins.schnet.family`."""

from __future__ import annotations

from protgraph_plugins.schnet.family import FAMILY

__all__ = ["FAMILY"]
