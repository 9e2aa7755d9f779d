"""Comparison of corresponding positions: superposition, RMSD and lDDT; interfaces of chains."""

from protgraph.structure.compare.interfaces import ChainInterface, chain_interfaces
from protgraph.structure.compare.local_distances import EQUIVALENT_ATOMS, LocalDistanceScores, compute_lddt
from protgraph.structure.compare.superposition import (
    Superposition,
    as_points,
    optimal_rotations,
    superpose,
    superposed_rmsd,
    tm_distance,
)

__all__ = [
    "EQUIVALENT_ATOMS",
    "ChainInterface",
    "LocalDistanceScores",
    "Superposition",
    "as_points",
    "chain_interfaces",
    "compute_lddt",
    "optimal_rotations",
    "superpose",
    "superposed_rmsd",
    "tm_distance",
]
