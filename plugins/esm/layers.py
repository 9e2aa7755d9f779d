"""ESM-2 as a layer that is trained with the rest of a model: ``esm_encoder``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, ClassVar

import numpy as np
import torch
from protgraph_plugins.esm.alignment import UNRESOLVED, SequencePart, check_window_options, tokenize_batch
from protgraph_plugins.esm.checkpoint import DEFAULT, load_esm
from protgraph_plugins.esm.states import attention_weights, hidden_states
from torch import Tensor, nn

from protgraph import Conformity, FieldSpec, GraphLayer, Proteins
from protgraph.data.graph.esm_vocabulary import AATYPE_TOKENS
from protgraph.errors import WiringError
from protgraph.nn.attention_recorder import AttentionMixin, PairWeights
from protgraph.nn.positional_encoding import PositionCode, rotary_code

__all__ = ["EsmEncoder"]
ENTRY_POINTS = {"protgraph.layers": {"esm_encoder": "EsmEncoder"}}

_WAITS = "chains are laid out on the host, which waits for the GPU once a batch to learn their lengths"


class EsmEncoder(GraphLayer):
    """``h_i``: the last hidden state of ESM-2, which is part of the model and learns with it.

    Each chain is a sequence of its own, ``<cls>``, residues, ``<eos>``, in the order of ``seq_pos``. Nodes of one chain
    and place are atoms of one residue, and have its state.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
    checkpoint : str
        Name on the Hugging Face hub, local folder, or ``"random:tiny"``, which knows nothing; see
        :func:`protgraph_plugins.esm.checkpoint.load_esm`.
    revision : str, optional
        Branch, tag or commit of a name on the hub.
    frozen : bool
        Keep the checkpoint's weights as they are: no gradient, no dropout.
    gaps : {"join", "mask", "unknown"}
        Unresolved residues inside a chain: left out, so that their neighbors follow each other; or, as many as
        ``seq_pos`` counts, ``<mask>`` or X.
    max_len : int
        Residues that are read at once.
    long : {"error", "chunk"}
        What becomes of longer chains: an error, or windows that overlap by half.

    Notes
    -----
    Reads: aatype ``(N,)``, masked ``(N,)`` bool, where ``<mask>`` stands for the residue, chain ``(N,)``, seq_pos
    ``(N,)``, proteins. Writes: h ``(N, D)``, ``D x 0e``.

    The layer ``encoder`` is the same architecture on the attention of the house;
    :func:`protgraph_plugins.esm.weights.load_encoder` gives it a checkpoint's weights.

    References
    ----------
    Lin et al. 2023, doi:10.1126/science.ade2574.
    """

    reads: ClassVar[tuple[str, ...]] = ("aatype", "masked", "chain", "seq_pos", "proteins")
    writes: ClassVar[tuple[str, ...]] = ("h",)
    conformity = Conformity(
        offline={"checkpoint": "random:tiny"},
        expected_failures={"cuda": _WAITS, "device": _WAITS},
    )

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        checkpoint: str = DEFAULT,
        revision: str | None = None,
        frozen: bool = False,
        gaps: str = "join",
        max_len: int = 1022,
        long: str = "error",
    ) -> None:
        super().__init__(fields)
        check_window_options(gaps, long, max_len)
        if fields["aatype"].classes != len(AATYPE_TOKENS):
            types = f"{len(AATYPE_TOKENS)} residue types"
            raise WiringError(f"esm_encoder reads {fields['aatype'].name!r} of {types}, not {fields['aatype'].classes}")
        self.gaps, self.max_len, self.long, self.frozen = gaps, max_len, long, frozen
        self.esm = load_esm(checkpoint, revision=revision)
        self.esm.contact_head = None  # of attention, not of states: it would never learn
        self.esm.requires_grad_(not frozen)
        self.blocks = nn.ModuleList(AttentionMixin() for _ in range(self.esm.config.num_hidden_layers))  # one recording point each
        self.declare(h=f"{self.esm.config.hidden_size}x0e")

    def train(self, mode: bool = True) -> EsmEncoder:
        super().train(mode)
        if self.frozen:
            self.esm.eval()
        return self

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        names = ("chain", "seq_pos", "aatype", "masked")
        arrays = (x.cpu().numpy() for x in (f["proteins"].batch, *(f[name] for name in names)))
        residue, owner, parts = tokenize_batch(*arrays, gaps=self.gaps, max_len=self.max_len, long=self.long)
        if any(block.is_recording for block in self.blocks):
            self._record_attention(f["proteins"], residue, owner, parts)
        if not parts:
            return {"h": self.esm.embeddings.word_embeddings.weight.new_zeros(0, self.out["h"].dim)}
        with torch.no_grad() if self.frozen else nullcontext():
            states = hidden_states(self.esm, [p.tokens for p in parts])
        rows = np.concatenate([p.rows[p.window.keep] for p in parts])  # residue of each place that is kept
        place = np.empty(len(owner), np.int64)
        place[rows[rows != UNRESOLVED]] = np.flatnonzero(rows != UNRESOLVED)
        kept = torch.cat([s[p.kept] for s, p in zip(states, parts, strict=True)])
        return {"h": kept.index_select(0, torch.from_numpy(place[residue]).to(kept.device))}

    def position_code(self, length: int) -> PositionCode:
        """Of the checkpoint: rotary, or (ESM-1b) learned."""
        config = self.esm.config
        if config.position_embedding_type == "rotary":
            return rotary_code(length, config.hidden_size // config.num_attention_heads)
        table = self.esm.embeddings.position_embeddings.weight.detach()
        return PositionCode("learned", table[config.pad_token_id + 2 :][:length])  # after <cls>

    @torch.no_grad()
    def _record_attention(self, proteins: Proteins, residue: np.ndarray, owner: np.ndarray, parts: Sequence[SequencePart]) -> None:
        """The weights of every block; residues of other chains, or of no common window, cannot be seen.

        The atoms of a residue share what is given to it.
        """
        config, count = self.esm.config, np.bincount(owner, minlength=len(proteins))
        start, shape = np.cumsum(count) - count, (config.num_hidden_layers, config.num_attention_heads)
        maps = [self.esm.embeddings.word_embeddings.weight.new_zeros(*shape, n, n) for n in count.tolist()]
        visible = [torch.zeros(n, n, dtype=torch.bool, device=maps[0].device) for n in count.tolist()]
        for weights, part in zip(attention_weights(self.esm, [p.tokens for p in parts]), parts, strict=True):
            w, rows = part.window, part.rows
            protein = owner[rows.max()]
            read, asked = np.arange(w.start, w.stop), np.arange(w.keep.start, w.keep.stop)
            read, asked = read[rows[read] != UNRESOLVED], asked[rows[asked] != UNRESOLVED]
            i, j = (torch.from_numpy(rows[x] - start[protein]).to(weights.device) for x in (asked, read))
            maps[protein][:, :, i[:, None], j] = weights[:, :, asked - w.start][:, :, :, read - w.start]
            visible[protein][i[:, None], j] = True
        for protein, own in enumerate(proteins.split(torch.from_numpy(residue))):  # from residues to nodes
            own = (own - start[protein]).to(maps[0].device)
            share = torch.bincount(own, minlength=int(count[protein]))[own]
            maps[protein] = maps[protein][:, :, own[:, None], own] / share
            visible[protein] = visible[protein][own[:, None], own]
        for number, block in enumerate(self.blocks):
            block.record_attention(PairWeights([m[number] for m in maps], visible))
