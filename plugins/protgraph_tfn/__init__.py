"""Tensor field networks on proteins; see :mod:`protgraph_tfn.family`."""

from __future__ import annotations

from protgraph_tfn.family import FAMILY

__all__ = ["FAMILY"]
