"""Scores of mutations: zero-shot log-odds, ensembles, scans of all substitutions, homo-oligomers."""

from __future__ import annotations

from protgraph.design.mutation.binding_scorer import BindingScorer, is_binding_model
from protgraph.design.mutation.chain_copies import chain_copies, mutate_copies
from protgraph.design.mutation.ensemble_scorer import ENSEMBLE_MODES, EnsembleScorer
from protgraph.design.mutation.log_odds_scorer import LogOddsScorer
from protgraph.design.mutation.score_variants import ScoredVariants, StructureFolder, score_variants
from protgraph.design.mutation.site_differences import SiteDifference, site_differences, sum_log_odds
from protgraph.design.mutation.substitution_scan import SubstitutionScan, scan_mutations

__all__ = [
    "ENSEMBLE_MODES",
    "BindingScorer",
    "EnsembleScorer",
    "LogOddsScorer",
    "ScoredVariants",
    "SiteDifference",
    "StructureFolder",
    "SubstitutionScan",
    "chain_copies",
    "is_binding_model",
    "mutate_copies",
    "scan_mutations",
    "score_variants",
    "site_differences",
    "sum_log_odds",
]
