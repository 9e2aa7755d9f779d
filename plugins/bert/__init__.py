"""Masked language models of protein sequences (BERT, ESM-2 architecture)."""

from __future__ import annotations

from protgraph_plugins.bert.family import FAMILY

__all__ = ["FAMILY"]
