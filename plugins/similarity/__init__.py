"""Similarity of proteins: homologs, similar structures, splits without relatives, scores of models, embeddings."""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module that exports it.
_HOME = {
    "ChainSequences": "protgraph_plugins.similarity.chains",
    "read_chain_sequences": "protgraph_plugins.similarity.chains",
    "SearchHits": "protgraph_plugins.similarity.embedding_search",
    "search_embeddings": "protgraph_plugins.similarity.embedding_search",
    "Homologs": "protgraph_plugins.similarity.homologs",
    "HomologyRule": "protgraph_plugins.similarity.homologs",
    "cluster_homologs": "protgraph_plugins.similarity.homologs",
    "find_homologs": "protgraph_plugins.similarity.homologs",
    "SplitCheck": "protgraph_plugins.similarity.leaks",
    "SplitLeak": "protgraph_plugins.similarity.leaks",
    "check_splits": "protgraph_plugins.similarity.leaks",
    "run_mmseqs": "protgraph_plugins.similarity.mmseqs_search",
    "cluster_pairs": "protgraph_plugins.similarity.pair_search",
    "PoseCheck": "protgraph_plugins.similarity.pose",
    "PoseLeak": "protgraph_plugins.similarity.pose",
    "check_pose": "protgraph_plugins.similarity.pose",
    "DatasetSplit": "protgraph_plugins.similarity.splits",
    "split_dataset": "protgraph_plugins.similarity.splits",
    "ResidueMatch": "protgraph_plugins.similarity.structure_comparison",
    "StructureComparison": "protgraph_plugins.similarity.structure_comparison",
    "compare_structures": "protgraph_plugins.similarity.structure_comparison",
    "match_residues": "protgraph_plugins.similarity.structure_comparison",
    "ChainTrace": "protgraph_plugins.similarity.structure_pairs",
    "StructurePairs": "protgraph_plugins.similarity.structure_pairs",
    "StructureRule": "protgraph_plugins.similarity.structure_pairs",
    "find_structure_pairs": "protgraph_plugins.similarity.structure_pairs",
    "structural_letters": "protgraph_plugins.similarity.structure_pairs",
    "Superposition": "protgraph_plugins.similarity.superposition",
    "superpose": "protgraph_plugins.similarity.superposition",
    "superposed_rmsd": "protgraph_plugins.similarity.superposition",
    "tm_distance": "protgraph_plugins.similarity.superposition",
    "SuperpositionScores": "protgraph_plugins.similarity.superposition_search",
    "superposition_scores": "protgraph_plugins.similarity.superposition_search",
    "StructureAlignment": "protgraph_plugins.similarity.tm_align",
    "align_structures": "protgraph_plugins.similarity.tm_align",
}

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)
