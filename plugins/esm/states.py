"""Compute hidden states and attention weights of ESM for many token sequences, batched by length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from protgraph_plugins.esm.language_model import ESM_TABLE, TokenTable
from torch import Tensor

from protgraph.errors import OptionError

__all__ = ["attention_weights", "check_layer", "hidden_states"]

#: Tokens of a batch, padding included.
_BUDGET = 8192


def check_layer(layer: int, depth: int) -> int:
    """Convert a layer index, possibly negative, to 0 (embedding of tokens) … ``depth`` (last block)."""
    if not -depth - 1 <= layer <= depth:
        raise OptionError(
            f"invalid layer: {layer}. This checkpoint has states 0 (tokens) to {depth} (last, normalized)."
        )
    return layer % (depth + 1)


def hidden_states(
    model: Any,
    sequences: Sequence[np.ndarray],
    *,
    layer: int = -1,
    budget: int = _BUDGET,
    table: TokenTable = ESM_TABLE,
) -> list[Tensor]:
    """Compute hidden states of token sequences that begin with ``<cls>`` and end with ``<eos>``.

    Parameters
    ----------
    model : transformers.PreTrainedModel
        Result of :func:`protgraph_plugins.esm.language_model.load_language_model`.
    sequences : sequence of ndarray
        ``(T + 2,)`` int64 each.
    layer : int
        Index into ``hidden_states`` of transformers; -1 is the last, normalized.
    budget : int
        Tokens of a batch, padding included.
    table : TokenTable
        Of the network; default: ESM-2.

    Returns
    -------
    list of Tensor
        ``(T, D)`` each, without the special tokens.
    """
    layer = check_layer(layer, model.config.num_hidden_layers)
    last = layer == model.config.num_hidden_layers
    results: list[Tensor | None] = [None] * len(sequences)
    translated = [table.translate(sequence) for sequence in sequences]
    first = int(table.has_start)
    for members, tokens, real in _batches(translated, budget, model.device, pad=table.pad):
        if model.config.model_type == "esm":
            inputs = {"inputs_embeds": _embedded(model, tokens, real)}
        else:
            inputs = {"input_ids": tokens}
        out = model(**inputs, attention_mask=real, output_hidden_states=not last)
        states = out.last_hidden_state if last else out.hidden_states[layer]
        for row, member in enumerate(members):
            results[member] = states[row, first : len(translated[member]) - 1]
    return [r for r in results if r is not None]


def attention_weights(model: Any, sequences: Sequence[np.ndarray], *, budget: int = _BUDGET) -> list[Tensor]:
    """Compute attention weights ``(blocks, heads, T, T)`` of each sequence, without the special tokens.

    The model is switched to its eager attention, which returns weights, and back afterwards.
    """
    implementation = model.config._attn_implementation
    model.set_attn_implementation("eager")
    results: list[Tensor | None] = [None] * len(sequences)
    try:
        for members, tokens, real in _batches(sequences, budget, model.device, pad=ESM_TABLE.pad):
            embedded = _embedded(model, tokens, real)
            out = model(inputs_embeds=embedded, attention_mask=real, output_attentions=True)
            weights = torch.stack(out.attentions, 1)  # (b, blocks, heads, L, L)
            for row, member in enumerate(members):
                inside = slice(1, len(sequences[member]) - 1)
                results[member] = weights[row, :, :, inside, inside]
    finally:
        model.set_attn_implementation(implementation)
    return [r for r in results if r is not None]


def _embedded(model: Any, tokens: Tensor, real: Tensor) -> Tensor:
    """Return input embeddings ``(b, L, D)``; transformers 5.0 otherwise counts padding in its mask ratio."""
    return model.embeddings(input_ids=tokens, attention_mask=real)


def _batches(
    sequences: Sequence[np.ndarray], budget: int, device: torch.device, *, pad: int
) -> Iterator[tuple[list[int], Tensor, Tensor]]:
    """Yield indices of the members, padded tokens ``(b, L)`` int64 and the padding mask ``(b, L)`` int64 (1: token)."""
    batch: list[int] = []
    for member in sorted(range(len(sequences)), key=lambda k: -len(sequences[k])):  # the longest first
        if batch and (len(batch) + 1) * len(sequences[batch[0]]) > budget:
            yield _padded(sequences, batch, device, pad)
            batch = []
        batch.append(member)
    if batch:
        yield _padded(sequences, batch, device, pad)


def _padded(
    sequences: Sequence[np.ndarray], members: list[int], device: torch.device, pad: int
) -> tuple[list[int], Tensor, Tensor]:
    tokens = np.full((len(members), len(sequences[members[0]])), pad)
    for row, member in enumerate(members):
        tokens[row, : len(sequences[member])] = sequences[member]
    padded = torch.from_numpy(tokens).to(device)
    return members, padded, (padded != pad).long()
