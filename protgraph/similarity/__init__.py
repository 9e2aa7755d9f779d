"""Similarity of sequences: local alignments of all pairs, homologs, clusters."""

from protgraph.similarity.clusters import cluster_homologs
from protgraph.similarity.homologs import Homologs, find_homologs
from protgraph.similarity.rule import HomologyRule

__all__ = ["HomologyRule", "Homologs", "cluster_homologs", "find_homologs"]
