"""PocketNet: binding sites of small molecules from points on the surface that attend to the atoms around them."""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module that exports it.
_HOME = {
    "FAMILY": "protgraph_plugins.pocketnet.family",
    "PointPocket": "protgraph_plugins.pocketnet.pockets",
    "PocketNet": "protgraph_plugins.pocketnet.pockets",
    "cluster_points": "protgraph_plugins.pocketnet.pockets",
}

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)
