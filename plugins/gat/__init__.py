"""Graph attention networks on proteins."""

from __future__ import annotations

from protgraph_plugins.gat.family import FAMILY
from protgraph_plugins.gat.layer import GAT

__all__ = ["FAMILY", "GAT"]
