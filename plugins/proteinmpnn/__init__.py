"""ProteinMPNN with its published weights."""

from __future__ import annotations

from protgraph_plugins.proteinmpnn.family import FAMILY

__all__ = ["FAMILY"]
