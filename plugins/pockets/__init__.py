"""Pockets of proteins: alpha spheres between atoms, cavity descriptors of residues, ranked pockets."""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module that exports it.
_HOME = {
    "AlphaSpheres": "protgraph_plugins.pockets.spheres",
    "Pocket": "protgraph_plugins.pockets.pockets",
    "PocketFinder": "protgraph_plugins.pockets.find",
    "ProteinPockets": "protgraph_plugins.pockets.find",
    "alpha_spheres": "protgraph_plugins.pockets.spheres",
    "find_pockets": "protgraph_plugins.pockets.find",
    "pockets_of": "protgraph_plugins.pockets.pockets",
    "smooth_step": "protgraph_plugins.pockets.spheres",
}

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)
