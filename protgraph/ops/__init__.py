"""Reductions over neighbors, proteins and segments: the tensor operations that layers use; depends on torch only."""

from protgraph.ops.cache_blocks import map_edge_blocks
from protgraph.ops.edge_functions import BesselBasis, ExponentialBasis, cosine_cutoff, polar, unit_or_zero
from protgraph.ops.edges import Edges, check_edges
from protgraph.ops.proteins import Proteins
from protgraph.ops.ragged import PaddedBlock, PaddedLayout, PaddedSide, SingleBlockLayout
from protgraph.ops.segment import Segments

__all__ = [
    "BesselBasis",
    "Edges",
    "ExponentialBasis",
    "PaddedBlock",
    "PaddedLayout",
    "PaddedSide",
    "Proteins",
    "Segments",
    "SingleBlockLayout",
    "check_edges",
    "cosine_cutoff",
    "map_edge_blocks",
    "polar",
    "unit_or_zero",
]
