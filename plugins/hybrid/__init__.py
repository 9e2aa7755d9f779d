"""A transformer and a tensor field network in parallel."""

from __future__ import annotations

from protgraph_plugins.hybrid.family import FAMILY

__all__ = ["FAMILY"]
