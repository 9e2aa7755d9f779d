"""Graph attention networks on proteins."""

from __future__ import annotations

from protgraph_plugins.gat.family import FAMILY

__all__ = ["FAMILY"]
