"""Mutations: substitutions in text, models that score them, scans, tables of variants, datasets, and comparisons.

Names are imported on first use (PEP 562): parsing needs neither torch nor a model.
"""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module that exports it.
_HOME = {
    "BindingScorer": "protgraph_plugins.mutations.binding_scorer",
    "is_binding_model": "protgraph_plugins.mutations.binding_scorer",
    "MutationDataset": "protgraph_plugins.mutations.dataset",
    "MutationLabels": "protgraph_plugins.mutations.dataset",
    "SourceVariant": "protgraph_plugins.mutations.dataset",
    "join_mutations": "protgraph_plugins.mutations.dataset",
    "ENSEMBLE_MODES": "protgraph_plugins.mutations.ensemble_scorer",
    "EnsembleScorer": "protgraph_plugins.mutations.ensemble_scorer",
    "MutationHead": "protgraph_plugins.mutations.head",
    "draw_scan": "protgraph_plugins.mutations.heat_map",
    "LogOddsScorer": "protgraph_plugins.mutations.log_odds_scorer",
    "SiteDifference": "protgraph_plugins.mutations.log_odds_scorer",
    "site_differences": "protgraph_plugins.mutations.log_odds_scorer",
    "sum_log_odds": "protgraph_plugins.mutations.log_odds_scorer",
    "Mutation": "protgraph_plugins.mutations.mutation",
    "format_variant": "protgraph_plugins.mutations.mutation",
    "parse_mutations": "protgraph_plugins.mutations.mutation",
    "parse_variants": "protgraph_plugins.mutations.mutation",
    "ResidueIndex": "protgraph_plugins.mutations.residue_index",
    "find_residues": "protgraph_plugins.mutations.residue_index",
    "DDG_UNIT": "protgraph_plugins.mutations.scorer",
    "MutationScorer": "protgraph_plugins.mutations.scorer",
    "score_column": "protgraph_plugins.mutations.scorer",
    "sign_convention": "protgraph_plugins.mutations.scorer",
    "SubstitutionScan": "protgraph_plugins.mutations.substitution_scan",
    "scan_mutations": "protgraph_plugins.mutations.substitution_scan",
    "MutationRow": "protgraph_plugins.mutations.table",
    "MutationTable": "protgraph_plugins.mutations.table",
    "read_mutation_table": "protgraph_plugins.mutations.table",
    "NEAREST": "protgraph_plugins.mutations.tasks",
    "mutation_graph": "protgraph_plugins.mutations.tasks",
    "ScoredVariants": "protgraph_plugins.mutations.variant_scores",
    "StructureFolder": "protgraph_plugins.mutations.variant_scores",
    "chain_copies": "protgraph_plugins.mutations.variant_scores",
    "mutate_copies": "protgraph_plugins.mutations.variant_scores",
    "score_variants": "protgraph_plugins.mutations.variant_scores",
}

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)
