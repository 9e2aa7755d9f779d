"""Transformers without edges on proteins; see :mod:`protgraph_plugins.transformer.family`."""

from __future__ import annotations

from protgraph_plugins.transformer.family import FAMILY

__all__ = ["FAMILY"]
