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
    "CHAINS_IN_ORDER": "protgraph.nn.positional_encoding",
    "ChannelwiseProduct": "protgraph.nn.tensor_product",
    "Decoder": "protgraph.nn.decoder",
    "DecoderState": "protgraph.nn.decoder",
    "DotProductAttention": "protgraph.nn.dot_product_attention",
    "EdgeWeights": "protgraph.nn.attention_recorder",
    "Gate": "protgraph.nn.gate",
    "GraphLayer": "protgraph.nn.module",
    "Head": "protgraph.nn.module",
    "IrrepsLinear": "protgraph.nn.layers.irreps",
    "KVCache": "protgraph.nn.kv_cache",
    "LOOPS_OVER_PROTEINS": "protgraph.nn.module",
    "LearnedPositions": "protgraph.nn.positional_encoding",
    "LearnedQueries": "protgraph.nn.multihead",
    "MultiHeadAttention": "protgraph.nn.multihead",
    "OffsetBias": "protgraph.nn.positional_encoding",
    "PAIR_FACTORS": "protgraph.nn.pair_factors",
    "PairWeights": "protgraph.nn.attention_recorder",
    "PositionCode": "protgraph.nn.positional_encoding",
    "PostNormBlock": "protgraph.nn.layers.transformer_block",
    "PreNormBlock": "protgraph.nn.layers.transformer_block",
    "RowBatchNorm": "protgraph.nn.batch_norm",
    "Standardize": "protgraph.nn.standardize",
    "TensorProductBackend": "protgraph.nn.tensor_product",
    "activation": "protgraph.nn.mlp",
    "check_pair_factors": "protgraph.nn.pair_factors",
    "check_parameter_names": "protgraph.nn.reference_weights",
    "extend_by_factors": "protgraph.nn.pair_factors",
    "gate_linear": "protgraph.nn.mlp",
    "invariant_width": "protgraph.nn.invariant",
    "invariants": "protgraph.nn.invariant",
    "invariants_are_chiral": "protgraph.nn.invariant",
    "irreps_blocks": "protgraph.nn.irreps",
    "load_reference_state": "protgraph.nn.reference_weights",
    "named_irreps_blocks": "protgraph.nn.irreps",
    "offset_bins": "protgraph.nn.positional_encoding",
    "pair_term": "protgraph.nn.dot_product_attention",
    "position_index": "protgraph.nn.positional_encoding",
    "reference_errors": "protgraph.nn.reference_weights",
    "require_cuequivariance": "protgraph.nn.cuequivariance_backend",
    "require_cuequivariance_kernels": "protgraph.nn.cuequivariance_backend",
    "require_options": "protgraph.nn.reference_weights",
    "rotary_code": "protgraph.nn.positional_encoding",
    "rotate": "protgraph.nn.positional_encoding",
    "run_in_chunks": "protgraph.nn.dot_product_attention",
    "sample_classes": "protgraph.nn.sampling",
    "sampling_probabilities": "protgraph.nn.sampling",
    "sinusoid": "protgraph.nn.positional_encoding",
    "split_heads": "protgraph.nn.multihead",
}

__all__ = list(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME)
