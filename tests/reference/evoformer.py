"""Weights of OpenFold's alignment modules in our layers."""

from __future__ import annotations

from collections.abc import Mapping

from protgraph_plugins.evoformer.msa import (
    MsaColumnAttention,
    MsaColumnGlobalAttention,
    MsaOuterProductMean,
    MsaRowAttention,
    msa_spec,
)
from torch import Tensor

from protgraph.data.graph.fields import FieldSpec, field
from protgraph.nn.reference_weights import load_reference_state, reference_errors

__all__ = [
    "load_msa_column_attention",
    "load_msa_column_global_attention",
    "load_msa_outer_product_mean",
    "load_msa_row_attention",
]

# Names of OpenFold → ours: the attention module "mha." is part of the layer, and so is "global_attention."; the rest is
# the same. MSAColumnAttention wraps its attention in "_msa_att.".


def load_msa_row_attention(state_dict: Mapping[str, Tensor]) -> MsaRowAttention:
    """Build the layer from the state of an OpenFold ``MSARowAttentionWithPairBias``, output width c_hidden · heads."""
    state = {name.removeprefix("mha."): value for name, value in state_dict.items()}
    with reference_errors("MSARowAttentionWithPairBias"):
        state.pop("layer_norm_z.bias")  # cancelled by the softmax
        (heads, pair), width = state["linear_z.weight"].shape, len(state["layer_norm_m.weight"])
    layer = MsaRowAttention(_fields(width, pair), heads=heads)
    load_reference_state(layer, state, "MSARowAttentionWithPairBias")
    return layer


def load_msa_column_attention(state_dict: Mapping[str, Tensor], *, heads: int) -> MsaColumnAttention:
    """Build the layer from the state of an OpenFold ``MSAColumnAttention``, which does not contain ``heads``."""
    state = {name.removeprefix("_msa_att.").removeprefix("mha."): value for name, value in state_dict.items()}
    with reference_errors("MSAColumnAttention"):
        width = len(state["layer_norm_m.weight"])
    layer = MsaColumnAttention(_fields(width), heads=heads)
    load_reference_state(layer, state, "MSAColumnAttention")
    return layer


def load_msa_column_global_attention(state_dict: Mapping[str, Tensor]) -> MsaColumnGlobalAttention:
    """Build the layer from the state of an OpenFold ``MSAColumnGlobalAttention``."""
    state = {name.removeprefix("global_attention."): value for name, value in state_dict.items()}
    with reference_errors("MSAColumnGlobalAttention"):
        width = len(state["layer_norm_m.weight"])
        heads = width // len(state["linear_k.weight"])
    layer = MsaColumnGlobalAttention(_fields(width), heads=heads)
    load_reference_state(layer, state, "MSAColumnGlobalAttention")
    return layer


def load_msa_outer_product_mean(state_dict: Mapping[str, Tensor]) -> MsaOuterProductMean:
    """Build the layer from the state of an OpenFold ``OuterProductMean``."""
    with reference_errors("OuterProductMean"):
        (hidden, width), dim = state_dict["linear_1.weight"].shape, len(state_dict["linear_out.bias"])
    layer = MsaOuterProductMean(_fields(width), dim=dim, hidden=hidden)
    load_reference_state(layer, state_dict, "OuterProductMean")
    return layer


def _fields(width: int, pair: int = 4) -> dict[str, FieldSpec]:
    return {
        "msa": msa_spec(width),
        "msa_mask": FieldSpec("msa_mask", "node", "1x0e", "bool", shape=(None,)),
        "pair": FieldSpec("pair", "pair", f"{pair}x0e"),
        "proteins": field("proteins"),
    }
