"""Sequences for backbones: decoding orders, constraints, sampling and scoring, for every model with a decoder."""

from __future__ import annotations

from protgraph.design.arrays import write_designs, write_scores
from protgraph.design.autoregressive import SampledSequences, sample_sequences
from protgraph.design.constraint import Constraints
from protgraph.design.decode import Decoding, check_designs, conditional, forced, unconditional
from protgraph.design.decoding_order import forward_order, random_decoding_order, ranks
from protgraph.design.design_fasta import by_protein, read_sequences, records, write_fasta
from protgraph.design.result import Design, Scores
from protgraph.design.run import MODES, design_sequences, score_sequences
from protgraph.design.spec import DesignSpec

__all__ = [
    "MODES",
    "Constraints",
    "Decoding",
    "Design",
    "SampledSequences",
    "Scores",
    "DesignSpec",
    "by_protein",
    "check_designs",
    "conditional",
    "design_sequences",
    "forced",
    "forward_order",
    "random_decoding_order",
    "ranks",
    "read_sequences",
    "records",
    "sample_sequences",
    "score_sequences",
    "unconditional",
    "write_designs",
    "write_fasta",
    "write_scores",
]
