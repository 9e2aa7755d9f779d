"""Neural networks: layers and heads as maps between named fields, and the modules that they are built from.

The layers are in :mod:`protgraph.nn.layers`, the heads in :mod:`protgraph.nn.heads`. Names that need e3nn are imported
on first use (PEP 562).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from protgraph.lazy_names import lazy_names
from protgraph.nn.attention_recorder import AttentionMixin, AttentionRecorder, EdgeWeights, PairWeights
from protgraph.nn.decoder import Decoder, DecoderState
from protgraph.nn.dot_product_attention import DotProductAttention, pair_term, run_in_chunks
from protgraph.nn.irreps import (
    Gate,
    invariant_width,
    invariants,
    invariants_are_chiral,
    irreps_blocks,
    named_irreps_blocks,
)
from protgraph.nn.layers.embed import Embed
from protgraph.nn.layers.transformer import PostNormBlock, PreNormBlock
from protgraph.nn.lora import LowRankTerm, add_low_rank_terms, merge_low_rank_terms
from protgraph.nn.mlp import activation, gate_linear
from protgraph.nn.module import LOOPS_OVER_PROTEINS, GraphLayer, Head
from protgraph.nn.multihead import (
    PAIR_FACTORS,
    LearnedQueries,
    MultiHeadAttention,
    check_pair_factors,
    extend_by_factors,
    split_heads,
)
from protgraph.nn.positional_encoding import (
    CHAINS_IN_ORDER,
    LearnedPositions,
    OffsetBias,
    PositionCode,
    offset_bins,
    position_index,
    rotary_code,
    rotate,
    sinusoid,
)
from protgraph.nn.reference_weights import (
    check_parameter_names,
    load_reference_state,
    reference_errors,
    require_options,
)
from protgraph.nn.standardize import RowBatchNorm, Standardize

if TYPE_CHECKING:
    from protgraph.nn.layers.irreps import IrrepsLinear

# Public name → module, for names that need e3nn.
_HOME = {
    "IrrepsLinear": "protgraph.nn.layers.irreps",
}

__all__ = [
    "AttentionMixin",
    "AttentionRecorder",
    "CHAINS_IN_ORDER",
    "Decoder",
    "DecoderState",
    "DotProductAttention",
    "EdgeWeights",
    "Embed",
    "Gate",
    "GraphLayer",
    "Head",
    "IrrepsLinear",
    "LOOPS_OVER_PROTEINS",
    "LearnedPositions",
    "LearnedQueries",
    "LowRankTerm",
    "MultiHeadAttention",
    "OffsetBias",
    "PAIR_FACTORS",
    "PairWeights",
    "PositionCode",
    "PostNormBlock",
    "PreNormBlock",
    "RowBatchNorm",
    "Standardize",
    "activation",
    "add_low_rank_terms",
    "check_pair_factors",
    "check_parameter_names",
    "extend_by_factors",
    "gate_linear",
    "invariant_width",
    "invariants",
    "invariants_are_chiral",
    "irreps_blocks",
    "load_reference_state",
    "merge_low_rank_terms",
    "named_irreps_blocks",
    "offset_bins",
    "pair_term",
    "position_index",
    "reference_errors",
    "require_options",
    "rotary_code",
    "rotate",
    "run_in_chunks",
    "sinusoid",
    "split_heads",
]
__getattr__, _ = lazy_names(__name__, _HOME)


def __dir__() -> list[str]:
    return __all__
