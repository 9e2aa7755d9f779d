"""Heads: predictions of a target per residue, edge, protein or pair of residues."""

from __future__ import annotations

from protgraph.nn.heads.perceptron import Pool

__all__ = ["Pool"]
