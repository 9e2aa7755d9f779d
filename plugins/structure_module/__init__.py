"""Backbone prediction from a sequence with the structure module of AlphaFold 2."""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module that exports it.
_HOME = {
    "FAMILY": "protgraph_plugins.structure_module.family",
    "PairEmbed": "protgraph_plugins.structure_module.pair",
    "TriangleAttention": "protgraph_plugins.structure_module.triangle",
    "TriangleMultiplication": "protgraph_plugins.structure_module.triangle",
}

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)
