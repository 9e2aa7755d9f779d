"""TensorNet (Cartesian tensor representations) on proteins."""

from __future__ import annotations

from protgraph_plugins.tensornet.family import FAMILY

__all__ = ["FAMILY"]
