"""Transformers without edges on proteins; see :mod:`protgraph_transformer.family`."""

from __future__ import annotations

from protgraph_transformer.family import FAMILY

__all__ = ["FAMILY"]
