"""A protein language model as a trainable layer: ``esm_encoder``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, ClassVar

import numpy as np
import torch
from protgraph_plugins.esm.alignment import (
    UNRESOLVED,
    SequencePart,
    check_window_options,
    letter_numbers,
    tokenize_batch,
)
from protgraph_plugins.esm.checkpoint import DEFAULT
from protgraph_plugins.esm.language_model import ESM_TABLE, load_language_model, load_token_table
from protgraph_plugins.esm.states import attention_weights, check_layer, hidden_states
from protgraph_plugins.esm.vocabulary import AATYPE_TOKENS, TOKENS
from torch import Tensor, nn

from protgraph import FieldSpec, GraphLayer, Proteins
from protgraph.data import Conformity
from protgraph.errors import WiringError
from protgraph.nn import AttentionMixin, PairWeights, PositionCode, rotary_code

__all__ = ["EsmEncoder"]
ENTRY_POINTS = {"protgraph.layers": {"esm_encoder": "EsmEncoder"}}

_HOST_SYNC = "sequences of chains are built on the host, which synchronizes with the GPU once per batch"


class EsmEncoder(GraphLayer):
    """Hidden state ``h_i`` of a protein language model, whose weights are part of the model.

    The checkpoint is one of ESM-2, ESM-C, ProtT5, Ankh or SaProt. Each chain is a separate sequence, with the special
    tokens of the model, in the order of ``seq_pos``. Nodes of the same chain and position (atoms of a residue) share
    the state of the residue. Attention weights are recorded for ESM-2 only. SaProt computes 3Di letters from
    ``backbone``, without gradients; if it is not wired, they are unknown.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
    checkpoint : str
        Name on the Hugging Face hub, local folder, or ``"random:tiny"`` (random weights); see
        :func:`protgraph_plugins.esm.language_model.load_language_model`.
    revision : str, optional
        Branch, tag or commit of a name on the hub.
    layer : int
        Index of the hidden state in transformers: 0 is the embedding of tokens, -1 the last, normalized.
    frozen : bool
        Keep the weights of the checkpoint fixed: no gradient, no dropout.
    gaps : {"join", "mask", "unknown"}
        Unresolved residues inside a chain: left out, or replaced by as many ``<mask>`` or X as ``seq_pos`` counts.
    max_len : int
        Maximal number of residues of one input.
    long : {"error", "chunk"}
        Treatment of longer chains: an error, or windows that overlap by half.

    Notes
    -----
    Reads: aatype ``(N,)``, masked ``(N,)`` bool (``<mask>`` in place of the residue; X
    in T5), chain ``(N,)``, seq_pos
    ``(N,)``, proteins. Optional: backbone ``(N, 4, 3)``, for SaProt. Writes: h ``(N, D)``, ``D x 0e``.

    The layer ``encoder`` is the same architecture with protgraph's attention;
    :func:`protgraph_plugins.esm.weights.load_encoder` loads the weights of a checkpoint into it.

    References
    ----------
    Lin et al. 2023, doi:10.1126/science.ade2574.
    """

    reads: ClassVar[tuple[str, ...]] = ("aatype", "masked", "chain", "seq_pos", "proteins")
    optional: ClassVar[tuple[str, ...]] = ("backbone",)
    writes: ClassVar[tuple[str, ...]] = ("h",)
    conformity = Conformity(
        offline={"checkpoint": "random:tiny"},
        expected_failures={
            "compiled": _HOST_SYNC,
            "cuda": _HOST_SYNC,
            "device": _HOST_SYNC,
            "options": "revision chooses a version of the published weights, which the checks replace",
        },
    )

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        checkpoint: str = DEFAULT,
        revision: str | None = None,
        layer: int = -1,
        frozen: bool = False,
        gaps: str = "join",
        max_len: int = 1022,
        long: str = "error",
    ) -> None:
        super().__init__(fields)
        check_window_options(gaps, long, max_len)
        if fields["aatype"].classes != len(AATYPE_TOKENS):
            types = f"{len(AATYPE_TOKENS)} residue types"
            raise WiringError(
                f"wrong number of residue types in {fields['aatype'].name!r}: {fields['aatype'].classes}. esm_encoder "
                f"requires {types}."
            )
        self.gaps, self.max_len, self.long, self.frozen = gaps, max_len, long, frozen
        self.esm = load_language_model(checkpoint, revision=revision)
        self.token_table = load_token_table(checkpoint, revision=revision)
        if "backbone" in fields and not self.token_table.reads_structure:
            raise WiringError(
                f"esm_encoder reads 'backbone', but {checkpoint!r} reads the sequence only. Leave it out."
            )
        is_esm = self.token_table is ESM_TABLE
        if is_esm:
            self.esm.contact_head = None  # not used by hidden states
        self.esm.requires_grad_(not frozen)
        self.layer = check_layer(layer, self.esm.config.num_hidden_layers)
        # One recording point per block.
        self.blocks = nn.ModuleList(AttentionMixin() for _ in range(self.esm.config.num_hidden_layers if is_esm else 0))
        self.declare(h=f"{self.esm.config.hidden_size}x0e")

    def train(self, mode: bool = True) -> EsmEncoder:
        """Set the training mode; a frozen ESM-2 stays in evaluation mode, without dropout."""
        super().train(mode)
        if self.frozen:
            self.esm.eval()
        return self

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute the hidden states, ``h (N, dim)``; long chains are cut into windows."""
        tensors = [f["proteins"].batch, f["chain"], f["seq_pos"], f["aatype"], f["masked"]]
        arrays = [tensor.cpu().numpy() for tensor in tensors]
        residue, owner, sequence_parts = tokenize_batch(*arrays, gaps=self.gaps, max_len=self.max_len, long=self.long)
        if any(block.is_recording for block in self.blocks):
            self._record_attention(f["proteins"], residue, owner, sequence_parts)
        if not sequence_parts:
            return {"h": next(self.esm.parameters()).new_zeros(0, self.out["h"].dim)}
        with torch.no_grad() if self.frozen else nullcontext():
            tokens = [p.tokens for p in sequence_parts]
            if "backbone" in self.fields:
                tokens = _with_letters(sequence_parts, residue, f["backbone"].detach().cpu().numpy())
            states = hidden_states(self.esm, tokens, layer=self.layer, table=self.token_table)
        rows = np.concatenate([p.rows[p.window.keep] for p in sequence_parts])  # residue of each kept position
        position = np.empty(len(owner), np.int64)
        position[rows[rows != UNRESOLVED]] = np.flatnonzero(rows != UNRESOLVED)
        kept = torch.cat([s[p.kept] for s, p in zip(states, sequence_parts, strict=True)])
        return {"h": kept.index_select(0, torch.from_numpy(position[residue]).to(kept.device))}

    def position_code(self, length: int) -> PositionCode:
        """Return the position code of the checkpoint: rotary, or learned (ESM-1b)."""
        config = self.esm.config
        if config.position_embedding_type == "rotary":
            return rotary_code(length, config.hidden_size // config.num_attention_heads)
        table = self.esm.embeddings.position_embeddings.weight.detach()
        return PositionCode("learned", table[config.pad_token_id + 2 :][:length])  # after <cls>

    @torch.no_grad()
    def _record_attention(
        self, proteins: Proteins, residue: np.ndarray, owner: np.ndarray, sequences: Sequence[SequencePart]
    ) -> None:
        """Record the weights of every block; only residues of the same chain and window are visible to each other.

        The weight of a residue is divided equally between its atoms.
        """
        config, count = self.esm.config, np.bincount(owner, minlength=len(proteins))
        start, shape = np.cumsum(count) - count, (config.num_hidden_layers, config.num_attention_heads)
        maps = [self.esm.embeddings.word_embeddings.weight.new_zeros(*shape, n, n) for n in count.tolist()]
        visible = [torch.zeros(n, n, dtype=torch.bool, device=maps[0].device) for n in count.tolist()]
        weights_of_sequence = attention_weights(self.esm, [sequence.tokens for sequence in sequences])
        for weights, sequence in zip(weights_of_sequence, sequences, strict=True):
            w, rows = sequence.window, sequence.rows
            protein = owner[rows.max()]
            keys, queries = np.arange(w.start, w.stop), np.arange(w.keep.start, w.keep.stop)
            keys, queries = keys[rows[keys] != UNRESOLVED], queries[rows[queries] != UNRESOLVED]
            i, j = (torch.from_numpy(rows[x] - start[protein]).to(weights.device) for x in (queries, keys))
            maps[protein][:, :, i[:, None], j] = weights[:, :, queries - w.start][:, :, :, keys - w.start]
            visible[protein][i[:, None], j] = True
        for protein, residue_rows in enumerate(proteins.split(torch.from_numpy(residue))):  # from residues to nodes
            residue_rows = (residue_rows - start[protein]).to(maps[0].device)
            share = torch.bincount(residue_rows, minlength=int(count[protein]))[residue_rows]
            maps[protein] = maps[protein][:, :, residue_rows[:, None], residue_rows] / share
            visible[protein] = visible[protein][residue_rows[:, None], residue_rows]
        for number, block in enumerate(self.blocks):
            block.record_attention(PairWeights([m[number] for m in maps], visible))


def _with_letters(sequences: Sequence[SequencePart], residue: np.ndarray, backbone: np.ndarray) -> list[np.ndarray]:
    """Return the tokens of each part with the 3Di letters of its chain; ``backbone (N, 4, 3)`` is of the nodes."""
    _, first = np.unique(residue, return_index=True)
    tokens = []
    for sequence in sequences:
        letters = letter_numbers(backbone[first], sequence.rows)[sequence.window.start : sequence.window.stop]
        tokens.append(sequence.tokens + len(TOKENS) * np.pad(letters, 1))  # none for start and end
    return tokens
