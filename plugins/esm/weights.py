"""The weights of a transformers' ESM-2 in our own ``encoder``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from protgraph_plugins.esm.checkpoint import DEFAULT, load_esm
from torch import Tensor

from protgraph.errors import CheckpointError
from protgraph.nn.layers import Encoder

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
    """An ``encoder`` with the weights of an ESM-2 checkpoint; it reads tokens.

    Parameters
    ----------
    checkpoint, revision
        See :func:`protgraph_plugins.esm.checkpoint.load_esm`.

    Raises
    ------
    CheckpointError
        It is not built as the published ESM-2: rotary positions, token dropout, dense layers of four times the width.
    """
    model = load_esm(checkpoint, revision=revision)
    config = model.config
    told = config.position_embedding_type, config.emb_layer_norm_before, config.token_dropout
    if told != ("rotary", False, True) or config.intermediate_size != 4 * config.hidden_size:
        raise CheckpointError(
            f"{checkpoint!r} is not built as the published ESM-2, as 'encoder' is: rotary positions, token dropout, no "
            "norm before the first block, dense layers of four times the width"
        )
    return Encoder.from_reference(rename_to_fair_esm(model.state_dict()), heads=config.num_attention_heads)


def rename_to_fair_esm(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state of a transformers' ``EsmModel`` under the names of facebookresearch/esm."""
    made = {"embed_tokens.weight": state["embeddings.word_embeddings.weight"]}
    for kind in ("weight", "bias"):
        made[f"emb_layer_norm_after.{kind}"] = state[f"encoder.emb_layer_norm_after.{kind}"]
    for name, value in state.items():
        found = _BLOCK.fullmatch(name)
        if found and found[2] in _NAMES:
            made[f"layers.{found[1]}.{_NAMES[found[2]]}.{found[3]}"] = value
    return made
