"""Mutations: substitutions in text, models that score them, scans, tables of variants, datasets, and comparisons.

Names are imported on first use (PEP 562): parsing needs neither torch nor a model.
"""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module of this package.
_MODULES = {
    "BindingScorer": "binding_scorer",
    "DDG_UNIT": "scorer",
    "ENSEMBLE_MODES": "ensemble_scorer",
    "EnsembleScorer": "ensemble_scorer",
    "LogOddsScorer": "log_odds_scorer",
    "Mutation": "mutation",
    "MutationDataset": "dataset",
    "MutationHead": "head",
    "MutationLabels": "dataset",
    "MutationRow": "table",
    "MutationScorer": "scorer",
    "MutationTable": "table",
    "NEAREST": "tasks",
    "ResidueIndex": "residue_index",
    "ScoredVariants": "variant_scores",
    "SiteDifference": "log_odds_scorer",
    "SourceVariant": "dataset",
    "StructureFolder": "variant_scores",
    "SubstitutionScan": "substitution_scan",
    "chain_copies": "variant_scores",
    "draw_scan": "heat_map",
    "find_residues": "residue_index",
    "format_variant": "mutation",
    "is_binding_model": "binding_scorer",
    "join_mutations": "dataset",
    "mutate_copies": "variant_scores",
    "mutation_graph": "tasks",
    "parse_mutations": "mutation",
    "parse_variants": "mutation",
    "read_mutation_table": "table",
    "scan_mutations": "substitution_scan",
    "score_column": "scorer",
    "score_variants": "variant_scores",
    "sign_convention": "scorer",
    "site_differences": "log_odds_scorer",
    "sum_log_odds": "log_odds_scorer",
}

__all__ = list(_MODULES)
__getattr__, __dir__ = lazy_names(__name__, {name: f"{__name__}.{module}" for name, module in _MODULES.items()})
