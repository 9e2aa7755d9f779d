"""Causal language models of protein sequences (GPT)."""

from __future__ import annotations

from protgraph_plugins.gpt.family import FAMILY

__all__ = ["FAMILY"]
