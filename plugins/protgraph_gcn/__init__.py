"""Graph convolutional networks on proteins; see :mod:`protgraph_gcn.family`."""

from __future__ import annotations

from protgraph_gcn.family import FAMILY

__all__ = ["FAMILY"]
