"""Masked language models of protein sequences; see :mod:`protgraph_plugins.bert.family`."""

from __future__ import annotations

from protgraph_plugins.bert.family import FAMILY

__all__ = ["FAMILY"]
