"""ProteinMPNN with its published weights, and what LigandMPNN shares with it: node update, radial basis."""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module; layers are imported on first use, since they need torch.
_HOME = {
    "FAMILY": "protgraph_plugins.proteinmpnn.family",
    "NodeUpdate": "protgraph_plugins.proteinmpnn.layers",
    "SOFTEN": "protgraph_plugins.proteinmpnn.gaussian",
    "published_encoder": "protgraph_plugins.proteinmpnn.encoder_embedding",
    "gaussians": "protgraph_plugins.proteinmpnn.gaussian",
}

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)
