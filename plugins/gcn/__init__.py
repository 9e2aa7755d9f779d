"""Graph convolutional networks on proteins."""

from __future__ import annotations

from protgraph_plugins.gcn.family import FAMILY

__all__ = ["FAMILY"]
