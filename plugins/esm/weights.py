"""Load ESM-2 weights of transformers into the layer ``encoder``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from protgraph_plugins.esm.checkpoint import DEFAULT, load_esm
from torch import Tensor

from protgraph.errors import CheckpointError
from protgraph.nn.layers.encoder import Encoder

__all__ = ["load_encoder", "rename_to_fair_esm"]

#: Name in transformers → name in facebookresearch/esm, which ``Encoder.from_reference`` reads.
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
    return Encoder.from_reference(rename_to_fair_esm(model.state_dict()), heads=config.num_attention_heads)


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
