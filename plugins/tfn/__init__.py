"""Tensor field networks on proteins."""

from __future__ import annotations

from protgraph_plugins.tfn.family import FAMILY

__all__ = ["FAMILY"]
