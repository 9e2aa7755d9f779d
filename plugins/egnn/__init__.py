"""E(n)-equivariant graph networks on proteins; see :mod:`protgraph_plugins.egnn.family`."""

from __future__ import annotations

from protgraph_plugins.egnn.family import FAMILY

__all__ = ["FAMILY"]
