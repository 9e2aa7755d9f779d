"""Geometric vector perceptrons on proteins."""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module; the perceptrons are imported on first use, since they need torch.
_HOME = {
    "FAMILY": "protgraph_plugins.gvp.family",
    "GVP": "protgraph_plugins.gvp.perceptron",
    "ScalarVector": "protgraph_plugins.gvp.perceptron",
    "ScalarVectorDropout": "protgraph_plugins.gvp.perceptron",
    "ScalarVectorNorm": "protgraph_plugins.gvp.perceptron",
    "ScalarVectorWidths": "protgraph_plugins.gvp.perceptron",
}

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)
