"""ProteinMPNN with its published weights, and its node update, which LigandMPNN shares."""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module; layers are imported on first use, since they need torch.
_HOME = {"FAMILY": "protgraph_plugins.proteinmpnn.family", "NodeUpdate": "protgraph_plugins.proteinmpnn.layers"}

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)
