"""Graph transformers on proteins; see :mod:`protgraph_plugins.graph_transformer.family`."""

from __future__ import annotations

from protgraph_plugins.graph_transformer.family import FAMILY

__all__ = ["FAMILY"]
