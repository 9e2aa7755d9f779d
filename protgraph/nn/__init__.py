"""Neural networks: layers and heads as maps between named fields, and the modules that they are built from.

The layers are in :mod:`protgraph.nn.layers`, the heads in :mod:`protgraph.nn.heads`. The modules that need e3nn are not
imported here: :mod:`protgraph.nn.gate`, :mod:`protgraph.nn.tensor_product`, :mod:`protgraph.nn.pairwise_kernel`,
:mod:`protgraph.nn.equivariant_attention` and :mod:`protgraph.nn.polynomial`.
"""

from __future__ import annotations

from protgraph.nn.attention_recorder import AttentionMixin, AttentionRecorder, EdgeWeights, PairWeights
from protgraph.nn.continuous_filter import filtered_sum
from protgraph.nn.decoder import Decoder, DecoderState
from protgraph.nn.dot_product_attention import DotProductAttention
from protgraph.nn.gvp_modules import GVP, ScalarVector, ScalarVectorDropout, ScalarVectorNorm, ScalarVectorWidths
from protgraph.nn.invariant import invariant_width, invariants, invariants_are_chiral
from protgraph.nn.kv_cache import KVCache
from protgraph.nn.mlp import activation
from protgraph.nn.module import GraphLayer, Head
from protgraph.nn.multihead import LearnedQueries, MultiHeadAttention, split_heads
from protgraph.nn.node_update import NodeUpdate
from protgraph.nn.positional_encoding import (
    LearnedPositions,
    OffsetBias,
    PositionCode,
    position_index,
    rotate,
    sinusoid,
)
from protgraph.nn.radial_basis import BesselBasis, polar
from protgraph.nn.sampling import sample_classes, sampling_probabilities
from protgraph.nn.standardize import Standardize

__all__ = [
    "AttentionMixin",
    "AttentionRecorder",
    "BesselBasis",
    "Decoder",
    "DecoderState",
    "DotProductAttention",
    "EdgeWeights",
    "GVP",
    "GraphLayer",
    "Head",
    "KVCache",
    "LearnedPositions",
    "LearnedQueries",
    "MultiHeadAttention",
    "NodeUpdate",
    "OffsetBias",
    "PairWeights",
    "PositionCode",
    "ScalarVector",
    "ScalarVectorDropout",
    "ScalarVectorNorm",
    "ScalarVectorWidths",
    "Standardize",
    "activation",
    "filtered_sum",
    "invariant_width",
    "invariants",
    "invariants_are_chiral",
    "polar",
    "position_index",
    "rotate",
    "sample_classes",
    "sampling_probabilities",
    "sinusoid",
    "split_heads",
]
