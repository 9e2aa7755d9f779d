"""Masked language models of protein sequences; see :mod:`protgraph_bert.family`."""

from __future__ import annotations

from protgraph_bert.family import FAMILY

__all__ = ["FAMILY"]
