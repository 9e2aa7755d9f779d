"""PaiNN (polarizable atom interaction networks) on proteins."""

from __future__ import annotations

from protgraph_plugins.painn.family import FAMILY

__all__ = ["FAMILY"]
