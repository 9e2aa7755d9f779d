"""Invariant point attention on proteins."""

from __future__ import annotations

from protgraph_plugins.ipa.family import FAMILY

__all__ = ["FAMILY"]
