"""The floors that every model must beat; see :mod:`protgraph_plugins.baseline.family`."""

from __future__ import annotations

from protgraph_plugins.baseline.family import MAJORITY, SEQUENCE_MLP

__all__ = ["MAJORITY", "SEQUENCE_MLP"]
