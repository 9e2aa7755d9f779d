"""Substitutions of residues: parsing, rows in a structure, and the interface of models that score them."""

from __future__ import annotations

from protgraph.structure.mutation.mutation import Mutation, format_variant, parse_mutations, parse_variants
from protgraph.structure.mutation.residue_index import ResidueIndex, find_residues
from protgraph.structure.mutation.scorer import DDG_UNIT, MutationScorer, score_column, sign_convention

__all__ = [
    "DDG_UNIT",
    "Mutation",
    "MutationScorer",
    "ResidueIndex",
    "find_residues",
    "format_variant",
    "parse_mutations",
    "parse_variants",
    "score_column",
    "sign_convention",
]
