"""ProNet (complete 3D graph network of residues) on proteins."""

from __future__ import annotations

from protgraph_plugins.pronet.family import FAMILY

__all__ = ["FAMILY"]
