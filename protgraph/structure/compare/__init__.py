"""Comparison of structures with corresponding residues: lDDT, TM-score, GDT and RMSD; interfaces of chains."""

from protgraph.structure.compare.interfaces import ChainInterface, chain_interfaces
from protgraph.structure.compare.local_distances import LocalDistanceScores, compute_lddt
from protgraph.structure.compare.residue_match import ResidueMatch, match_residues
from protgraph.structure.compare.structure_comparison import StructureComparison, compare_structures
from protgraph.structure.compare.superposition import Superposition, superpose, superposed_rmsd
from protgraph.structure.compare.superposition_search import SuperpositionScores, superposition_scores, tm_distance

__all__ = [
    "ChainInterface",
    "LocalDistanceScores",
    "ResidueMatch",
    "StructureComparison",
    "Superposition",
    "SuperpositionScores",
    "chain_interfaces",
    "compare_structures",
    "compute_lddt",
    "match_residues",
    "superpose",
    "superposed_rmsd",
    "superposition_scores",
    "tm_distance",
]
