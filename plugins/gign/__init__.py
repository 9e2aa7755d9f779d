"""GIGN: message passing along covalent bonds and, with other weights, between a protein and its ligand."""

from __future__ import annotations

from protgraph_plugins.gign.family import FAMILY

__all__ = ["FAMILY"]
