"""Transformer encoder of residue types, as in ESM-2 or BERT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import torch
from annotated_types import Ge
from protgraph_plugins.esm.vocabulary import AATYPE_TOKENS, END, MASK, START, TOKENS
from torch import Tensor, nn

from protgraph.data.graph import Conformity, FieldSpec, field
from protgraph.errors import FieldError, WiringError
from protgraph.nn import (
    CHAINS_IN_ORDER,
    GraphLayer,
    LearnedPositions,
    PositionCode,
    PostNormBlock,
    PreNormBlock,
    position_index,
    sinusoid,
)
from protgraph.ops import Proteins

__all__ = ["Encoder"]
ENTRY_POINTS = {"protgraph.layers": {"encoder": "Encoder"}}

# Share of masked tokens in ESM's training: 15 % chosen, of these 80 % masked.
_ENDS_ON_THE_HOST = {"compiled": "sizes of proteins with <cls> and <eos> are computed on the host"}
_MASKED = 0.15 * 0.8


class Encoder(GraphLayer):
    """Transformer encoder of residue types, as in ESM-2 or BERT: ``h = norm(B_n(… B_1(E[token]) …))``.

    Each protein is encoded as ``<cls>``, its residues, ``<eos>``; both tokens are removed from the output. The blocks B
    are ``pre_norm_block``, or ``post_norm_block`` with ``norm="post"``, where E[token] with its positions is normalized
    instead of the output.

    Parameters
    ----------
    dim : int
        Width of the output.
    heads : int
        Number of attention heads.
    depth : int
        Number of blocks.
    position : {"rotary", "offset", "sinusoidal", "learned", "none"}
        Positional encoding: inside attention (the first two) or added to ``E[token]``.
    norm : {"pre", "post"}
        Layer normalization before each part, as in ESM-2, or after each residual sum, as in BERT.
    token_dropout : bool
        As in ESM: ``<mask>`` tokens are 0, and the others are scaled by ``(1 - 0.12) / (1 - masked share)``. False:
        ``<mask>`` has its own embedding, as in BERT.
    max_len : int
        Maximum number of residues of a protein; with learned positions also the number of positions.
    dropout : float
        Dropout probability in the blocks.

    Notes
    -----
    Reads: ``aatype`` ``(N,)``, of 21 residue types or of the 33 tokens of :mod:`protgraph_plugins.esm.vocabulary`;
    ``seq_pos`` ``(N,)``; ``proteins``. Optional: ``chain`` ``(N,)``: chains follow each other with a gap; ``masked``
    ``(N,)`` bool: residues whose token is ``<mask>``.
    Writes: ``h`` ``(N, dim)``, ``dim x 0e``.

    References
    ----------
    Lin et al. 2023, doi:10.1126/science.ade2574; Rives et al. 2021, doi:10.1073/pnas.2016239118; Devlin et al. 2019,
    arXiv:1810.04805.
    """

    reads: ClassVar[tuple[str, ...]] = ("aatype", "seq_pos", "proteins")
    optional: ClassVar[tuple[str, ...]] = ("chain", "masked")
    writes: ClassVar[tuple[str, ...]] = ("h",)
    conformity: ClassVar[Conformity] = Conformity(expected_failures=_ENDS_ON_THE_HOST)
    special_tokens: ClassVar[tuple[int, int]] = (1, 1)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        dim: int = 64,
        heads: int = 4,
        depth: int = 3,
        position: Literal["rotary", "offset", "sinusoidal", "learned", "none"] = "rotary",
        norm: Literal["pre", "post"] = "pre",
        token_dropout: bool = True,
        max_len: Annotated[int, Ge(1)] = 4096,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(fields)
        types = fields["aatype"].classes
        if types not in (len(AATYPE_TOKENS), len(TOKENS)):
            both = f"{len(AATYPE_TOKENS)} residue types or {len(TOKENS)} tokens"
            raise WiringError(f"encoder reads {fields['aatype'].name!r} of {types} classes, but it needs {both}.")
        post = norm == "post"
        self.max_len, self.position, self.post, self.token_dropout = max_len, position, post, token_dropout
        tokens = AATYPE_TOKENS if types == len(AATYPE_TOKENS) else range(len(TOKENS))
        self.register_buffer("token", torch.tensor(tokens), persistent=False)
        self.embed = nn.Embedding(len(TOKENS), dim)
        self.place = LearnedPositions(max_len, dim, ends=1) if position == "learned" else None
        inside = position in ("rotary", "offset")
        inputs = {"h": FieldSpec("h", "node", f"{dim}x0e"), "proteins": field("proteins")}
        inputs |= {"seq_pos": field("seq_pos")} if inside else {}
        kind = position if inside else None
        block = PostNormBlock if post else PreNormBlock
        self.blocks = nn.ModuleList(block(inputs, heads=heads, position=kind, dropout=dropout) for _ in range(depth))
        self.norm = nn.LayerNorm(dim)
        self.declare(h=f"{dim}x0e")
        if "chain" in fields and position != "none":
            self.conformity = Conformity(expected_failures=CHAINS_IN_ORDER | _ENDS_ON_THE_HOST)

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)``, the state after the last block."""
        return {"h": self.states(f)[-1]}

    def states(self, f: Mapping[str, Any]) -> list[Tensor]:
        """Return ``(N, dim)`` before the first block and after each block; the last one is normalized."""
        token, inputs, rows = self._read(f)
        h = self._embed(token, inputs)
        h = self.norm(h) if self.post else h
        states = [h.index_select(0, rows)]
        for number, block in enumerate(self.blocks, 1):
            h = block({"h": h, **inputs})["h"]
            last = self.norm(h) if number == len(self.blocks) and not self.post else h
            states.append(last.index_select(0, rows))
        return states

    def position_code(self, length: int) -> PositionCode | None:
        """Return the added sinusoids; other encodings are returned by the module that applies them."""
        if self.position != "sinusoidal":
            return None
        return PositionCode("sinusoidal", sinusoid(torch.arange(length), self.embed.embedding_dim, torch.float64))

    def _read(self, f: Mapping[str, Any]) -> tuple[Tensor, dict[str, Any], Tensor]:
        """Return tokens ``(N + 2B,)``, their proteins and positions, and the rows ``(N,)`` of residues."""
        self._check(f["proteins"])
        inside = self.token[f["aatype"]]
        if "masked" in f:
            inside = inside.masked_fill(f["masked"], MASK)
        return _with_ends(inside, position_index(f["seq_pos"], f["proteins"], f.get("chain")), f["proteins"])

    def _embed(self, token: Tensor, inputs: Mapping[str, Any]) -> Tensor:
        h = self.embed(token)
        if self.token_dropout:
            masked, proteins = (token == MASK).unsqueeze(1), inputs["proteins"]
            h = h.masked_fill(masked, 0.0)
            h = h * proteins.expand((1 - _MASKED) / (1 - proteins.mean(masked.to(h.dtype))))
        if self.position == "sinusoidal":
            h = h + sinusoid(inputs["seq_pos"], h.size(1), h.dtype)
        return h if self.place is None else h + self.place(inputs["seq_pos"])

    def _check(self, proteins: Proteins) -> None:
        longest = proteins.longest
        if longest > self.max_len:
            number = proteins.sizes.index(longest)
            raise FieldError(
                f"protein {number} of the batch has {longest} residues, above max_len={self.max_len} of the encoder. "
                "Split it into chains or domains, or build the encoder with a larger max_len."
            )


def _with_ends(token: Tensor, position: Tensor, proteins: Proteins) -> tuple[Tensor, dict[str, Any], Tensor]:
    """Add ``<cls>`` and ``<eos>`` to the tokens ``(N,)`` of each protein; return also the rows of the N."""
    n, b = proteins.batch.numel(), len(proteins)
    protein = torch.arange(b, device=proteins.batch.device)
    rows = torch.arange(n, device=protein.device) + 2 * proteins.batch + 1
    start, end = proteins.ptr[:-1] + 2 * protein, proteins.ptr[1:] + 2 * protein + 1
    first, last = -proteins.max(-position), proteins.max(position)

    def around(before: Tensor, inside: Tensor, after: Tensor) -> Tensor:
        whole = inside.new_zeros(n + 2 * b).index_copy(0, rows, inside)
        return whole.index_copy(0, start, before).index_copy(0, end, after)

    token = around(torch.full_like(protein, START), token, torch.full_like(protein, END))
    batch = around(protein, proteins.batch, protein)
    wider = Proteins(batch, tuple(size + 2 for size in proteins.sizes), padded=proteins.padded)
    return token, {"proteins": wider, "seq_pos": around(first - 1, position, last + 1)}, rows
