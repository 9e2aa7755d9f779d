"""Transformers over all residues of a protein."""

from __future__ import annotations

from protgraph_plugins.transformer.family import FAMILY

__all__ = ["FAMILY"]
