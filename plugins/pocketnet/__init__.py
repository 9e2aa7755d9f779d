"""PocketNet: binding sites of small molecules from points on the surface that attend to the atoms around them."""

from __future__ import annotations

from protgraph_plugins.pocketnet.family import FAMILY

__all__ = ["FAMILY"]
