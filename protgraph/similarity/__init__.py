"""Similarity of sequences: local alignments of all pairs, homologs, clusters."""

from protgraph.similarity.cluster_comparison import ClusterComparison, compare_clusters
from protgraph.similarity.clusters import cluster_homologs, cluster_pairs
from protgraph.similarity.homologs import ENGINES, Homologs, find_homologs
from protgraph.similarity.rule import HomologyRule

__all__ = [
    "ENGINES",
    "ClusterComparison",
    "HomologyRule",
    "Homologs",
    "cluster_homologs",
    "cluster_pairs",
    "compare_clusters",
    "find_homologs",
]
