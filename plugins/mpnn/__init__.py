"""Message passing networks with edge features on proteins; see :mod:`protgraph_plugins.mpnn.family`."""

from __future__ import annotations

from protgraph_plugins.mpnn.family import FAMILY

__all__ = ["FAMILY"]
