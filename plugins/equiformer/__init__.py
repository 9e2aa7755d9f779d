"""Equiformer (equivariant graph attention) on proteins."""

from __future__ import annotations

from protgraph_plugins.equiformer.family import FAMILY

__all__ = ["FAMILY"]
