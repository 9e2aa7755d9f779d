# Written by tools/stubs.py.
from protgraph_plugins.similarity.chains import (
    ChainSequences as ChainSequences,
    read_chain_sequences as read_chain_sequences,
)
from protgraph_plugins.similarity.embedding_search import (
    SearchHits as SearchHits,
    search_embeddings as search_embeddings,
)
from protgraph_plugins.similarity.homologs import (
    Homologs as Homologs,
    HomologyRule as HomologyRule,
    cluster_homologs as cluster_homologs,
    find_homologs as find_homologs,
)
from protgraph_plugins.similarity.leaks import (
    SplitCheck as SplitCheck,
    SplitLeak as SplitLeak,
    check_splits as check_splits,
)
from protgraph_plugins.similarity.mmseqs_search import run_mmseqs as run_mmseqs
from protgraph_plugins.similarity.pair_search import cluster_pairs as cluster_pairs
from protgraph_plugins.similarity.pose import PoseCheck as PoseCheck, PoseLeak as PoseLeak, check_pose as check_pose
from protgraph_plugins.similarity.splits import DatasetSplit as DatasetSplit, split_dataset as split_dataset
from protgraph_plugins.similarity.structure_comparison import (
    ResidueMatch as ResidueMatch,
    StructureComparison as StructureComparison,
    compare_structures as compare_structures,
    match_residues as match_residues,
)
from protgraph_plugins.similarity.structure_pairs import (
    ChainTrace as ChainTrace,
    StructurePairs as StructurePairs,
    StructureRule as StructureRule,
    find_structure_pairs as find_structure_pairs,
    structural_letters as structural_letters,
)
from protgraph_plugins.similarity.superposition import (
    Superposition as Superposition,
    superpose as superpose,
    superposed_rmsd as superposed_rmsd,
    tm_distance as tm_distance,
)
from protgraph_plugins.similarity.superposition_search import (
    SuperpositionScores as SuperpositionScores,
    superposition_scores as superposition_scores,
)
from protgraph_plugins.similarity.tm_align import (
    StructureAlignment as StructureAlignment,
    align_structures as align_structures,
)
