"""Backbone prediction from a sequence with the structure module of AlphaFold 2."""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module that exports it.
_HOME = {
    "FAMILY": "protgraph_plugins.structure_module.family",
    "STRUCTURE_PREDICTION": "protgraph_plugins.structure_module.task",
    "PairEmbed": "protgraph_plugins.structure_module.pair",
    "TriangleAttention": "protgraph_plugins.structure_module.triangle",
    "TriangleMultiplication": "protgraph_plugins.structure_module.triangle",
    "fape": "protgraph_plugins.structure_module.task",
    "lddt_ca": "protgraph_plugins.structure_module.task",
    "rmsd_superposed": "protgraph_plugins.structure_module.task",
    "tm_score": "protgraph_plugins.structure_module.task",
}

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)
