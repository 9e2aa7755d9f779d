"""DimeNet and DimeNet++ (directional message passing) on proteins."""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module; the basis is imported on first use, since it needs torch.
_HOME = {
    "EdgeCosine": "protgraph_plugins.dimenet.line_graph",
    "FAMILY": "protgraph_plugins.dimenet.family",
    "LineGraph": "protgraph_plugins.dimenet.line_graph",
    "SphericalBasis": "protgraph_plugins.dimenet.basis",
}

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)
