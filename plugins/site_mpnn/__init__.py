"""Message passing networks for binding sites: surroundings of each residue, and geometry of side chains on edges."""

from __future__ import annotations

from protgraph_plugins.site_mpnn.family import FAMILY

__all__ = ["FAMILY"]
