"""Graph attention networks on proteins."""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module; layers are imported on first use, since they need torch.
_HOME = {
    "FAMILY": "protgraph_plugins.gat.family",
    "GAT": "protgraph_plugins.gat.layer",
}

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)
