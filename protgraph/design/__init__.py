"""Sequence design for backbones: decoding orders, constraints, sampling and scoring of residue types."""

from __future__ import annotations

from protgraph.design.arrays import write_designs, write_scores
from protgraph.design.autoregressive import SampledSequences, sample_sequences
from protgraph.design.constraint import Constraints
from protgraph.design.decode import (
    Decoding,
    check_design_model,
    conditional_log_probs,
    masked_log_probs,
    teacher_forced_log_probs,
    unconditional_log_probs,
)
from protgraph.design.decoding_order import decoding_ranks, forward_order, random_decoding_order
from protgraph.design.design_fasta import (
    design_records,
    read_design_sequences,
    sequences_by_protein,
    write_design_fasta,
)
from protgraph.design.evaluate import DesignMetrics, evaluate_design
from protgraph.design.residue_table import ResidueTable, read_residue_table
from protgraph.design.result import Design, Scores
from protgraph.design.run import SCORING_MODES, RefusedProteins, design_sequences, score_sequences
from protgraph.design.spec import DesignSpec

__all__ = [
    "SCORING_MODES",
    "Constraints",
    "Decoding",
    "Design",
    "DesignMetrics",
    "DesignSpec",
    "RefusedProteins",
    "ResidueTable",
    "SampledSequences",
    "Scores",
    "check_design_model",
    "conditional_log_probs",
    "decoding_ranks",
    "design_records",
    "design_sequences",
    "evaluate_design",
    "forward_order",
    "masked_log_probs",
    "random_decoding_order",
    "read_design_sequences",
    "read_residue_table",
    "sample_sequences",
    "score_sequences",
    "sequences_by_protein",
    "teacher_forced_log_probs",
    "unconditional_log_probs",
    "write_design_fasta",
    "write_designs",
    "write_scores",
]
