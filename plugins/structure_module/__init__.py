"""Backbone prediction from a sequence with the structure module of AlphaFold 2."""

from __future__ import annotations

from protgraph_plugins.structure_module.family import FAMILY

__all__ = ["FAMILY"]
