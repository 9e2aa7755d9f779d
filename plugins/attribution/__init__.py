"""Attribution of predictions to residues and features."""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module that exports it.
_HOME = {
    "Attributions": "protgraph_plugins.attribution.attributions",
    "IntegratedGradients": "protgraph_plugins.attribution.attributions",
    "explain": "protgraph_plugins.attribution.attributions",
    "integrate_gradients": "protgraph_plugins.attribution.attributions",
}

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)
