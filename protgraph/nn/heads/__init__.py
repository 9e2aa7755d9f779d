"""Heads: predictions of a target per residue, edge, protein or pair of residues."""

from __future__ import annotations

from protgraph.nn.heads.contact import ContactHead
from protgraph.nn.heads.edge import EdgeHead
from protgraph.nn.heads.graph import GraphHead
from protgraph.nn.heads.interface import InterfaceHead
from protgraph.nn.heads.mutation_head import MutationHead
from protgraph.nn.heads.node import NodeHead
from protgraph.nn.heads.pool import Pool
from protgraph.nn.heads.vector import CoordinatesHead, VectorHead

__all__ = [
    "ContactHead",
    "CoordinatesHead",
    "EdgeHead",
    "GraphHead",
    "InterfaceHead",
    "MutationHead",
    "NodeHead",
    "Pool",
    "VectorHead",
]
