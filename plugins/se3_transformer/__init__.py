"""SE(3)-Transformers on proteins; see :mod:`protgraph_plugins.se3_transformer.family`."""

from __future__ import annotations

from protgraph_plugins.se3_transformer.family import FAMILY

__all__ = ["FAMILY"]
