"""ViSNet (vector-scalar interactive message passing) on proteins."""

from __future__ import annotations

from protgraph_plugins.visnet.family import FAMILY

__all__ = ["FAMILY"]
