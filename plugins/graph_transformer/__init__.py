"""Graph transformers on proteins, and positional encodings of graphs."""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module; layers are imported on first use, since they need torch.
_HOME = {
    "FAMILY": "protgraph_plugins.graph_transformer.family",
    "GraphTransformer": "protgraph_plugins.graph_transformer.layer",
    "LaplacianEncoding": "protgraph_plugins.graph_transformer.graph_encoding",
    "RandomWalkEncoding": "protgraph_plugins.graph_transformer.graph_encoding",
}

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)
