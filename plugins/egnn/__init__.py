"""E(n)-equivariant graph neural networks on proteins."""

from __future__ import annotations

from protgraph_plugins.egnn.family import FAMILY

__all__ = ["FAMILY"]
