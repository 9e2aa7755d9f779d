"""Graph convolutional networks on proteins; see :mod:`protgraph_plugins.gcn.family`."""

from __future__ import annotations

from protgraph_plugins.gcn.family import FAMILY

__all__ = ["FAMILY"]
