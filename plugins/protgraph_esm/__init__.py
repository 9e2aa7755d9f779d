"""Protein language models of the ESM-2 family in protgraph's models; see :mod:`protgraph_esm.family`."""

from __future__ import annotations

from protgraph_esm.family import FAMILY, HYBRID

__all__ = ["FAMILY", "HYBRID"]
