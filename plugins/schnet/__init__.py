"""SchNet (continuous-filter convolutions) on proteins."""

from __future__ import annotations

from protgraph_plugins.schnet.family import FAMILY

__all__ = ["FAMILY"]
