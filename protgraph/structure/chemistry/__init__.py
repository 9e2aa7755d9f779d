"""Bonds, hydrogen bonds, functional groups and van der Waals radii."""

from __future__ import annotations

from protgraph.structure.chemistry.vdw import vdw_radii

__all__ = ["vdw_radii"]
