"""GCPNet (geometry-complete perceptrons) on proteins."""

from __future__ import annotations

from protgraph_plugins.gcpnet.family import FAMILY

__all__ = ["FAMILY"]
