"""Graph transformers on proteins."""

from __future__ import annotations

from protgraph_plugins.graph_transformer.family import FAMILY
from protgraph_plugins.graph_transformer.layer import GraphTransformer

__all__ = ["FAMILY", "GraphTransformer"]
