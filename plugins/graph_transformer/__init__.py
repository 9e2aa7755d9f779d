"""Graph transformers on proteins."""

from __future__ import annotations

from protgraph_plugins.graph_transformer.family import FAMILY

__all__ = ["FAMILY"]
