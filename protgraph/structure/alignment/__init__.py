"""Alignment of structures without their sequence: TM-scores, and pairs of similar chains."""

from protgraph.structure.alignment.structure_pairs import (
    ChainTrace,
    StructurePairs,
    StructureRule,
    find_structure_pairs,
)
from protgraph.structure.alignment.tm_align import StructureAlignment, align_structures

__all__ = [
    "ChainTrace",
    "StructureAlignment",
    "StructurePairs",
    "StructureRule",
    "align_structures",
    "find_structure_pairs",
]
