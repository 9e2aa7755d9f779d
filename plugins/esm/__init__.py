"""Protein language models of the ESM-2 family, alone and combined with structure graphs."""

from __future__ import annotations

from protgraph_plugins.esm.family import FAMILY, HYBRID

__all__ = ["FAMILY", "HYBRID"]
