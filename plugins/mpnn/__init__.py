"""Message passing neural networks on proteins."""

from __future__ import annotations

from protgraph_plugins.mpnn.family import FAMILY
from protgraph_plugins.mpnn.layer import MPNN

__all__ = ["FAMILY", "MPNN"]
