"""Causal language models of protein sequences; see :mod:`protgraph_gpt.family`."""

from __future__ import annotations

from protgraph_gpt.family import FAMILY

__all__ = ["FAMILY"]
