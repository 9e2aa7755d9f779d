"""GearNet: relational graph convolutions over typed edges."""

from __future__ import annotations

from protgraph_plugins.gearnet.family import EDGE_FAMILY, FAMILY

__all__ = ["EDGE_FAMILY", "FAMILY"]
