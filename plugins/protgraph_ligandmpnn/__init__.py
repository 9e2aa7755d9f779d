"""LigandMPNN with its published weights; see :mod:`protgraph_ligandmpnn.family`."""

from __future__ import annotations

from protgraph_ligandmpnn.family import FAMILY

__all__ = ["FAMILY"]
