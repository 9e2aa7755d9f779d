"""ESM's hidden states and attention of many token sequences, those of about one length at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from protgraph.data.graph.esm_vocabulary import PAD
from protgraph.errors import OptionError

__all__ = ["attention_weights", "check_layer", "hidden_states"]

#: Tokens of a batch, padding included.
_BUDGET = 8192


def check_layer(layer: int, depth: int) -> int:
    """``layer`` counted from the end made one from 0, the embedding of tokens, to ``depth``, the last block."""
    if not -depth - 1 <= layer <= depth:
        raise OptionError(f"layer={layer}: this checkpoint has states 0 (tokens) to {depth} (the last, normalized)")
    return layer % (depth + 1)


def hidden_states(model: Any, sequences: Sequence[np.ndarray], *, layer: int = -1, budget: int = _BUDGET) -> list[Tensor]:
    """Hidden states of sequences of tokens that begin with ``<cls>`` and end with ``<eos>``.

    Parameters
    ----------
    model : transformers.EsmModel
    sequences : sequence of ndarray
        ``(T + 2,)`` int64 each.
    layer : int
        Of which block, as transformers counts ``hidden_states``; -1 is the last, normalized.
    budget : int
        Tokens, padding included, that go through the model at once.

    Returns
    -------
    list of Tensor
        ``(T, D)`` each, without the special tokens.
    """
    layer = check_layer(layer, model.config.num_hidden_layers)
    last = layer == model.config.num_hidden_layers
    found: list[Tensor | None] = [None] * len(sequences)
    for members, tokens, real in _batches(sequences, budget, model.device):
        out = model(inputs_embeds=_embedded(model, tokens, real), attention_mask=real, output_hidden_states=not last)
        states = out.last_hidden_state if last else out.hidden_states[layer]
        for row, member in enumerate(members):
            found[member] = states[row, 1 : len(sequences[member]) - 1]
    return [f for f in found if f is not None]


def attention_weights(model: Any, sequences: Sequence[np.ndarray], *, budget: int = _BUDGET) -> list[Tensor]:
    """``(blocks, heads, T, T)`` weights of each sequence, without the special tokens.

    The model computes them with its plain formula, which it goes back from afterwards.
    """
    usual = model.config._attn_implementation
    model.set_attn_implementation("eager")
    found: list[Tensor | None] = [None] * len(sequences)
    try:
        for members, tokens, real in _batches(sequences, budget, model.device):
            embedded = _embedded(model, tokens, real)
            out = model(inputs_embeds=embedded, attention_mask=real, output_attentions=True)
            weights = torch.stack(out.attentions, 1)  # (b, blocks, heads, L, L)
            for row, member in enumerate(members):
                inside = slice(1, len(sequences[member]) - 1)
                found[member] = weights[row, :, :, inside, inside]
    finally:
        model.set_attn_implementation(usual)
    return [f for f in found if f is not None]


def _embedded(model: Any, tokens: Tensor, real: Tensor) -> Tensor:
    """``(b, L, D)``. Some versions of transformers (5.0) count padding among the tokens of which a share is masked."""
    return model.embeddings(input_ids=tokens, attention_mask=real)


def _batches(
    sequences: Sequence[np.ndarray], budget: int, device: torch.device
) -> Iterator[tuple[list[int], Tensor, Tensor]]:
    """Numbers of the members, their padded tokens ``(b, L)`` int64, and which are real ``(b, L)`` int64."""
    held: list[int] = []
    for member in sorted(range(len(sequences)), key=lambda k: -len(sequences[k])):  # the longest first
        if held and (len(held) + 1) * len(sequences[held[0]]) > budget:
            yield _padded(sequences, held, device)
            held = []
        held.append(member)
    if held:
        yield _padded(sequences, held, device)


def _padded(
    sequences: Sequence[np.ndarray], members: list[int], device: torch.device
) -> tuple[list[int], Tensor, Tensor]:
    tokens = np.full((len(members), len(sequences[members[0]])), PAD)
    for row, member in enumerate(members):
        tokens[row, : len(sequences[member])] = sequences[member]
    whole = torch.from_numpy(tokens).to(device)
    return members, whole, (whole != PAD).long()
