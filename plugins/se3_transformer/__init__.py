"""SE(3)-Transformers on proteins."""

from __future__ import annotations

from protgraph_plugins.se3_transformer.family import FAMILY

__all__ = ["FAMILY"]
