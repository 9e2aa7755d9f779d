"""Sequences for backbones: decoding orders, constraints, sampling and scoring, for every model with a decoder."""

from __future__ import annotations

from protgraph.design.arrays import write_designs, write_scores
from protgraph.design.autoregressive import SampledSequences, sample_sequences
from protgraph.design.constraint import Constraints
from protgraph.design.decode import Decoding, check_design_model, conditional_log_probs, teacher_forced_log_probs, unconditional_log_probs
from protgraph.design.decoding_order import forward_order, random_decoding_order, decoding_ranks
from protgraph.design.design_fasta import sequences_by_protein, read_design_sequences, design_records, write_design_fasta
from protgraph.design.result import Design, Scores
from protgraph.design.run import SCORING_MODES, design_sequences, score_sequences
from protgraph.design.spec import DesignSpec

__all__ = [
    "SCORING_MODES",
    "Constraints",
    "Decoding",
    "Design",
    "SampledSequences",
    "Scores",
    "DesignSpec",
    "sequences_by_protein",
    "check_design_model",
    "conditional_log_probs",
    "design_sequences",
    "teacher_forced_log_probs",
    "forward_order",
    "random_decoding_order",
    "decoding_ranks",
    "read_design_sequences",
    "design_records",
    "sample_sequences",
    "score_sequences",
    "unconditional_log_probs",
    "write_designs",
    "write_design_fasta",
    "write_scores",
]
