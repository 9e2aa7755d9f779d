"""Protein language models of the ESM-2 family in protgraph's models; see :mod:`protgraph_plugins.esm.family`."""

from __future__ import annotations

from protgraph_plugins.esm.family import FAMILY, HYBRID

__all__ = ["FAMILY", "HYBRID"]
