"""Comparison of corresponding positions: lDDT; interfaces of chains."""

from protgraph.structure.compare.interfaces import ChainInterface, chain_interfaces
from protgraph.structure.compare.local_distances import EQUIVALENT_ATOMS, LocalDistanceScores, compute_lddt

__all__ = [
    "EQUIVALENT_ATOMS",
    "ChainInterface",
    "LocalDistanceScores",
    "chain_interfaces",
    "compute_lddt",
]
