"""Message passing networks with edge features on proteins; see :mod:`protgraph_mpnn.family`."""

from __future__ import annotations

from protgraph_mpnn.family import FAMILY

__all__ = ["FAMILY"]
