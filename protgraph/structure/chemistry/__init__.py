"""Hydrogen bonds of backbones as in DSSP, and van der Waals radii."""

from __future__ import annotations

from protgraph.structure.chemistry.dssp_hbond import amide_hydrogen, backbone_hbonds
from protgraph.structure.chemistry.vdw import vdw_radii

__all__ = ["amide_hydrogen", "backbone_hbonds", "vdw_radii"]
