"""Substitutions of residues: parsing, rows in a structure, and the interface of models that score them."""

from __future__ import annotations

from protgraph.structure.mutation.mutation import Mutation, parse_mutations
from protgraph.structure.mutation.residue_index import ResidueIndex, find_residues
from protgraph.structure.mutation.scorer import DDG_UNIT, MutationScorer, score_column, sign_convention

__all__ = [
    "DDG_UNIT",
    "Mutation",
    "MutationScorer",
    "ResidueIndex",
    "find_residues",
    "parse_mutations",
    "score_column",
    "sign_convention",
]
