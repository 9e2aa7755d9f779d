"""ProteinMPNN with its published weights; see :mod:`protgraph_proteinmpnn.family`."""

from __future__ import annotations

from protgraph_proteinmpnn.family import FAMILY

__all__ = ["FAMILY"]
