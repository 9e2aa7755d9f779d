"""E(n)-equivariant graph networks on proteins; see :mod:`protgraph_egnn.family`."""

from __future__ import annotations

from protgraph_egnn.family import FAMILY

__all__ = ["FAMILY"]
