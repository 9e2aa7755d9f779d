"""Graph attention networks on proteins; see :mod:`protgraph_gat.family`."""

from __future__ import annotations

from protgraph_gat.family import FAMILY

__all__ = ["FAMILY"]
