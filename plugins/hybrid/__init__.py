"""A transformer and an equivariant network side by side on proteins; see :mod:`protgraph_plugins.hybrid.family`."""

from __future__ import annotations

from protgraph_plugins.hybrid.family import FAMILY

__all__ = ["FAMILY"]
