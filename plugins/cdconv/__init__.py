"""CDConv (continuous-discrete convolution) on proteins."""

from __future__ import annotations

from protgraph_plugins.cdconv.family import FAMILY

__all__ = ["FAMILY"]
