"""Neural networks: layers and heads as maps between named fields, and the modules that they are built from.

The layers are in :mod:`protgraph.nn.layers`, the heads in :mod:`protgraph.nn.heads`. Names are imported on first use
(PEP 562), since some need e3nn.
"""

from __future__ import annotations

from protgraph.lazy_names import lazy_names

# Public name → module.
_HOME = {
    "AttentionMixin": "protgraph.nn.attention_recorder",
    "AttentionRecorder": "protgraph.nn.attention_recorder",
    "BesselBasis": "protgraph.nn.radial_basis",
    "ChannelwiseProduct": "protgraph.nn.tensor_product",
    "Decoder": "protgraph.nn.decoder",
    "DecoderState": "protgraph.nn.decoder",
    "DotProductAttention": "protgraph.nn.dot_product_attention",
    "EdgeWeights": "protgraph.nn.attention_recorder",
    "GVP": "protgraph.nn.gvp_modules",
    "Gate": "protgraph.nn.gate",
    "GraphLayer": "protgraph.nn.module",
    "Head": "protgraph.nn.module",
    "IrrepsLinear": "protgraph.nn.layers.irreps",
    "KVCache": "protgraph.nn.kv_cache",
    "LearnedPositions": "protgraph.nn.positional_encoding",
    "LearnedQueries": "protgraph.nn.multihead",
    "MultiHeadAttention": "protgraph.nn.multihead",
    "NodeUpdate": "protgraph.nn.node_update",
    "OffsetBias": "protgraph.nn.positional_encoding",
    "PairWeights": "protgraph.nn.attention_recorder",
    "PositionCode": "protgraph.nn.positional_encoding",
    "ScalarVector": "protgraph.nn.gvp_modules",
    "ScalarVectorDropout": "protgraph.nn.gvp_modules",
    "ScalarVectorNorm": "protgraph.nn.gvp_modules",
    "ScalarVectorWidths": "protgraph.nn.gvp_modules",
    "Standardize": "protgraph.nn.standardize",
    "TensorProductBackend": "protgraph.nn.tensor_product",
    "activation": "protgraph.nn.mlp",
    "filtered_sum": "protgraph.nn.continuous_filter",
    "invariant_width": "protgraph.nn.invariant",
    "invariants": "protgraph.nn.invariant",
    "invariants_are_chiral": "protgraph.nn.invariant",
    "irreps_blocks": "protgraph.nn.irreps",
    "polar": "protgraph.nn.radial_basis",
    "position_index": "protgraph.nn.positional_encoding",
    "rotate": "protgraph.nn.positional_encoding",
    "sample_classes": "protgraph.nn.sampling",
    "sampling_probabilities": "protgraph.nn.sampling",
    "sinusoid": "protgraph.nn.positional_encoding",
    "split_heads": "protgraph.nn.multihead",
}

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)
