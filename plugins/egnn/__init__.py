"""E(n)-equivariant graph neural networks on proteins."""

from __future__ import annotations

from protgraph_plugins.egnn.family import FAMILY
from protgraph_plugins.egnn.layer import EGNN

__all__ = ["FAMILY", "EGNN"]
