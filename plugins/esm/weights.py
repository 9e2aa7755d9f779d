"""Load ESM-2 weights of transformers into the layer ``encoder``."""

from __future__ import annotations

import re
from collections.abc import Mapping

import torch
from protgraph_plugins.esm.checkpoint import DEFAULT, load_esm
from protgraph_plugins.esm.encoder import Encoder
from protgraph_plugins.esm.vocabulary import TOKENS
from torch import Tensor

from protgraph.data.graph import FieldSpec, field
from protgraph.errors import CheckpointError
from protgraph.nn import check_parameter_names, load_reference_state, reference_errors

__all__ = ["encoder_from_esm", "load_encoder", "rename_to_fair_esm"]

#: Name in transformers → name in facebookresearch/esm, which :func:`encoder_from_esm` reads.
_NAMES = {
    "attention.self.query": "self_attn.q_proj",
    "attention.self.key": "self_attn.k_proj",
    "attention.self.value": "self_attn.v_proj",
    "attention.output.dense": "self_attn.out_proj",
    "attention.LayerNorm": "self_attn_layer_norm",
    "intermediate.dense": "fc1",
    "output.dense": "fc2",
    "LayerNorm": "final_layer_norm",
}
_BLOCK = re.compile(r"encoder\.layer\.(\d+)\.(.+)\.(weight|bias)")


def load_encoder(checkpoint: str = DEFAULT, *, revision: str | None = None) -> Encoder:
    """Build an ``encoder`` with the weights of an ESM-2 checkpoint; it reads tokens.

    Parameters
    ----------
    checkpoint, revision
        See :func:`protgraph_plugins.esm.checkpoint.load_esm`.

    Raises
    ------
    CheckpointError
        The architecture differs from the published ESM-2: rotary positions, token dropout, feed-forward layers of four
        times the width.
    """
    model = load_esm(checkpoint, revision=revision)
    config = model.config
    architecture = config.position_embedding_type, config.emb_layer_norm_before, config.token_dropout
    if architecture != ("rotary", False, True) or config.intermediate_size != 4 * config.hidden_size:
        raise CheckpointError(
            f"architecture not supported by 'encoder': {checkpoint!r}. Required: rotary positions, token dropout, no "
            "norm before the first block, feed-forward layers of four times the width."
        )
    return encoder_from_esm(rename_to_fair_esm(model.state_dict()), heads=config.num_attention_heads)


def rename_to_fair_esm(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Rename the state of a transformers ``EsmModel``, of any shapes, to the names of facebookresearch/esm."""
    renamed = {"embed_tokens.weight": state["embeddings.word_embeddings.weight"]}
    for kind in ("weight", "bias"):
        renamed[f"emb_layer_norm_after.{kind}"] = state[f"encoder.emb_layer_norm_after.{kind}"]
    for name, value in state.items():
        match = _BLOCK.fullmatch(name)
        if match and match[2] in _NAMES:
            renamed[f"layers.{match[1]}.{_NAMES[match[2]]}.{match[3]}"] = value
    return renamed


#: Parameters of ESM-2, those of its heads and the frequencies of its rotary positions included.
_ESM_PARAMETERS = (
    r"embed_tokens\.weight|emb_layer_norm_after\.(weight|bias)|(lm_head|contact_head)\..+",
    r"layers\.\d+\.(self_attn\.[kqv]_proj|self_attn\.out_proj|fc[12])\.(weight|bias)",
    r"layers\.\d+\.(self_attn|final)_layer_norm\.(weight|bias)|layers\.\d+\.self_attn\.rot_emb\.inv_freq",
)


def encoder_from_esm(state_dict: Mapping[str, Tensor], *, heads: int) -> Encoder:
    """Build the encoder from the state of an ESM-2 model of facebookresearch/esm; it reads tokens.

    The language model head and the contact head are dropped. The state does not contain the number of heads.
    """
    check_parameter_names(state_dict, _ESM_PARAMETERS, "ESM-2")
    with reference_errors("ESM-2"):
        state = _from_esm(state_dict)
    dim, depth = state["norm.weight"].numel(), sum(k.endswith("norms.0.weight") for k in state)
    fields = {"seq_pos": field("seq_pos"), "proteins": field("proteins")}
    fields["aatype"] = FieldSpec("token", "node", "0e", "int64", shape=(), classes=len(TOKENS))
    encoder = Encoder(fields, dim=dim, heads=heads, depth=depth)
    load_reference_state(encoder, state, "ESM-2")
    return encoder


def _from_esm(state_dict: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Map ESM's parameter names to those of :class:`Encoder`."""
    state = {"embed.weight": state_dict["embed_tokens.weight"]}
    names = {"self_attn.out_proj": "attention.out", "self_attn.q_proj": "attention.query"}
    names |= {"self_attn_layer_norm": "norms.0", "final_layer_norm": "norms.1", "fc1": "feed_forward.0"}
    names |= {"fc2": "feed_forward.3"}
    for kind in ("weight", "bias"):
        state[f"norm.{kind}"] = state_dict[f"emb_layer_norm_after.{kind}"]
        for n in range(sum(k.endswith("fc1.weight") for k in state_dict)):
            theirs, ours = f"layers.{n}.", f"blocks.{n}."
            for old, new in names.items():
                state[f"{ours}{new}.{kind}"] = state_dict[f"{theirs}{old}.{kind}"]
            both = [state_dict[f"{theirs}self_attn.{part}_proj.{kind}"] for part in "kv"]
            state[f"{ours}attention.key_value.{kind}"] = torch.cat(both)
    return state
