"""Causal language models of protein sequences; see :mod:`protgraph_plugins.gpt.family`."""

from __future__ import annotations

from protgraph_plugins.gpt.family import FAMILY

__all__ = ["FAMILY"]
