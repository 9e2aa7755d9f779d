"""Invariant point attention on proteins; see :mod:`protgraph_ipa.family`."""

from __future__ import annotations

from protgraph_ipa.family import FAMILY

__all__ = ["FAMILY"]
