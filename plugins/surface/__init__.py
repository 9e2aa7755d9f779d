"""Points on the solvent-accessible surface as a node set, and a model with messages between them and residues."""

from __future__ import annotations

from protgraph_plugins.surface.family import FAMILY
from protgraph_plugins.surface.points import SurfacePoints, surface_points

__all__ = ["FAMILY", "SurfacePoints", "surface_points"]
