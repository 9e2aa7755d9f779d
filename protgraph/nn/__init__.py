"""Networks: layers (fields to fields) and heads (fields to prediction), written as formulas over named fields."""

from __future__ import annotations

from protgraph.nn.module import GraphLayer, Head

__all__ = ["GraphLayer", "Head"]
