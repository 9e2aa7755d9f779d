"""Similarity of proteins: homologs, similar structures, splits without relatives, scores of models, embeddings."""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

_NAMES = {
    "chains": ("ChainSequences", "read_chain_sequences"),
    "embedding_search": ("SearchHits", "search_embeddings"),
    "homologs": ("HomologyRule", "Homologs", "cluster_homologs", "find_homologs"),
    "leaks": ("SplitCheck", "SplitLeak", "check_splits"),
    "pair_search": ("cluster_pairs",),
    "pose": ("PoseCheck", "PoseLeak", "check_pose"),
    "splits": ("DatasetSplit", "split_dataset"),
    "structure_comparison": ("ResidueMatch", "StructureComparison", "compare_structures", "match_residues"),
    "structure_pairs": ("ChainTrace", "StructurePairs", "StructureRule", "find_structure_pairs"),
    "superposition_search": ("SuperpositionScores", "superposition_scores"),
    "tm_align": ("StructureAlignment", "align_structures"),
}
# Public name → module that exports it.
_HOME = {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names}

__all__ = [*_HOME]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
