"""Message passing neural networks on proteins."""

from __future__ import annotations

from protgraph_plugins.mpnn.family import FAMILY

__all__ = ["FAMILY"]
