# Written by tools/stubs.py.
from protgraph_plugins.mutations.binding_scorer import (
    BindingScorer as BindingScorer,
    is_binding_model as is_binding_model,
)
from protgraph_plugins.mutations.dataset import (
    MutationDataset as MutationDataset,
    MutationLabels as MutationLabels,
    SourceVariant as SourceVariant,
    join_mutations as join_mutations,
)
from protgraph_plugins.mutations.ensemble_scorer import (
    ENSEMBLE_MODES as ENSEMBLE_MODES,
    EnsembleScorer as EnsembleScorer,
)
from protgraph_plugins.mutations.head import MutationHead as MutationHead
from protgraph_plugins.mutations.heat_map import draw_scan as draw_scan
from protgraph_plugins.mutations.log_odds_scorer import (
    LogOddsScorer as LogOddsScorer,
    SiteDifference as SiteDifference,
    site_differences as site_differences,
    sum_log_odds as sum_log_odds,
)
from protgraph_plugins.mutations.mutation import (
    Mutation as Mutation,
    format_variant as format_variant,
    parse_mutations as parse_mutations,
    parse_variants as parse_variants,
)
from protgraph_plugins.mutations.residue_index import ResidueIndex as ResidueIndex, find_residues as find_residues
from protgraph_plugins.mutations.scorer import (
    DDG_UNIT as DDG_UNIT,
    MutationScorer as MutationScorer,
    score_column as score_column,
    sign_convention as sign_convention,
)
from protgraph_plugins.mutations.substitution_scan import (
    SubstitutionScan as SubstitutionScan,
    scan_mutations as scan_mutations,
)
from protgraph_plugins.mutations.table import (
    MutationRow as MutationRow,
    MutationTable as MutationTable,
    read_mutation_table as read_mutation_table,
)
from protgraph_plugins.mutations.tasks import NEAREST as NEAREST, mutation_graph as mutation_graph
from protgraph_plugins.mutations.variant_scores import (
    ScoredVariants as ScoredVariants,
    StructureFolder as StructureFolder,
    chain_copies as chain_copies,
    mutate_copies as mutate_copies,
    score_variants as score_variants,
)
