"""Reductions over neighbors, proteins and segments: the tensor operations that layers use; depends on torch only."""

from protgraph.ops.cache_blocks import map_edge_blocks
from protgraph.ops.edge_order import check_edges
from protgraph.ops.edges import Edges
from protgraph.ops.proteins import Proteins
from protgraph.ops.ragged import PaddedBlock, PaddedLayout, PaddedSide
from protgraph.ops.segment import Segments
from protgraph.ops.single_block import SingleBlockLayout

__all__ = [
    "Edges",
    "PaddedBlock",
    "PaddedLayout",
    "PaddedSide",
    "Proteins",
    "Segments",
    "SingleBlockLayout",
    "check_edges",
    "map_edge_blocks",
]
