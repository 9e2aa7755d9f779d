"""Updates of alignment features, and of pair features by them (Jumper et al. 2021, algorithms 3 and 7 to 10)."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi
from typing import Annotated, Any, ClassVar

import torch
from annotated_types import Ge
from protgraph_plugins.alignment import ABSENT
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from protgraph.data.graph import Conformity, FieldSpec
from protgraph.errors import WiringError
from protgraph.nn import LOOPS_OVER_PROTEINS, GraphLayer, gate_linear, run_in_chunks, split_heads

__all__ = [
    "MsaColumnAttention",
    "MsaColumnGlobalAttention",
    "MsaEmbed",
    "MsaOuterProductMean",
    "MsaRowAttention",
    "MsaTransition",
    "msa_spec",
    "msa_width",
]
ENTRY_POINTS = {
    "protgraph.layers": {
        "msa_column_attention": "MsaColumnAttention",
        "msa_column_global_attention": "MsaColumnGlobalAttention",
        "msa_embed": "MsaEmbed",
        "msa_outer_product_mean": "MsaOuterProductMean",
        "msa_row_attention": "MsaRowAttention",
        "msa_transition": "MsaTransition",
    }
}

_MASKED = 1e9  # subtracted from the logits of absent places, as in OpenFold
_ENTRIES = 1 << 24  # numbers of intermediate results at a time
_INPUTS = {
    "msa": FieldSpec("msa", "node", "16x0e", shape=(5, 16)),
    "msa_mask": FieldSpec("msa_mask", "node", "5x0e", "bool", shape=(5,)),
}
_PER_NODE = Conformity(inputs=_INPUTS)
_PER_PROTEIN = Conformity(inputs=_INPUTS, expected_failures=LOOPS_OVER_PROTEINS)


def msa_spec(width: int, rows: int | None = None) -> FieldSpec:
    """Return the spec of alignment features, ``(N, rows, width)``; of any number of rows by default."""
    return FieldSpec("msa", "node", f"{width}x0e", shape=(rows, width))


def msa_width(layer: GraphLayer) -> int:
    """Return the width of the alignment features of a layer."""
    spec = layer.fields["msa"]
    if spec.shape is None or len(spec.shape) != 2:
        raise WiringError(
            f"{type(layer).__name__} reads alignment features (N, S, C), and {spec.name!r} is {spec.irreps} per "
            f"{spec.level}. Add a layer 'msa_embed' before."
        )
    return spec.dim


def _hidden(present: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the term of the logits that hides absent places of the last axis.

    It is 0 where all places are absent: float32 has no digits for logits beside a large term.
    """
    is_present = present.bool()
    is_hidden = ~is_present & is_present.any(-1, keepdim=True)
    return -_MASKED * is_hidden.to(dtype)


def _entries(chunk: int | None, per_row: int) -> int:
    """Return the numbers at a time for chunks of rows; by default, as many as fit in 128 MB of float64."""
    return _ENTRIES if chunk is None else chunk * per_row


class MsaEmbed(GraphLayer):
    """Alignment features ``m_si = E[x_si] + D d_si + A[x_i]`` of the types x of sequences and of the protein.

    ``d`` is 1 where residues were left out in front of the column, and ``2/π arctan(n/3)`` for n of them.

    Parameters
    ----------
    dim : int
        Width of m.

    Notes
    -----
    Reads: ``alignment`` ``(N, S)`` int8 and ``alignment_deletions`` ``(N, S)`` uint8 (featurizer ``alignment``);
    ``aatype`` ``(N,)``. Writes: ``msa`` ``(N, S, dim)``; ``msa_mask`` ``(N, S)`` bool, False beyond the last sequence.

    The paper clusters sequences and appends profiles of the clusters; here sequences are drawn without.

    References
    ----------
    Jumper et al. 2021, doi:10.1038/s41586-021-03819-2, supplement, table 1 and algorithm 3.
    """

    reads: ClassVar[tuple[str, ...]] = ("alignment", "alignment_deletions", "aatype")
    writes: ClassVar[tuple[str, ...]] = ("msa", "msa_mask")

    def __init__(self, fields: Mapping[str, FieldSpec], *, dim: int = 32) -> None:
        super().__init__(fields)
        self.types = nn.Embedding(ABSENT + 1, dim)
        self.deletions = nn.Linear(2, dim, bias=False)
        self.target = nn.Embedding(fields["aatype"].dim, dim)
        (rows,) = fields["alignment"].trailing_shape
        self.declare(msa=msa_spec(dim, rows), msa_mask=FieldSpec("msa_mask", "node", "1x0e", "bool", shape=(rows,)))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``msa (N, S, dim)`` and ``msa_mask (N, S)``."""
        types = f["alignment"].long()
        count = f["alignment_deletions"].to(self.deletions.weight.dtype)
        deleted = torch.stack([count.clamp(max=1), (count / 3).atan() * (2 / pi)], -1)  # (N, S, 2)
        msa = self.types(types) + self.deletions(deleted) + self.target(f["aatype"]).unsqueeze(1)
        return {"msa": msa, "msa_mask": types != ABSENT}


class MsaRowAttention(GraphLayer):
    """Attention of the residues of each sequence, biased by pairs (Jumper et al. 2021, algorithm 7).

    ``m'_si = W ‖_heads g_si ⊙ Σ_j softmax_j( q_si·k_sj / √d + b_ij ) v_sj``, with q, k, v and ``g = sigmoid(G x)``
    linear in ``x = norm(m)`` and b in ``norm(z)``.

    Parameters
    ----------
    heads : int
        Number of attention heads.
    chunk : int, optional
        Sequences at a time, whose results are recomputed in the backward pass; None: as many as fit in 128 MB.

    Notes
    -----
    Reads: ``msa`` ``(N, S, C)``; ``msa_mask`` ``(N, S)``; ``pair`` ``(P, D)`` scalars; ``proteins``.
    Writes: ``msa`` ``(N, S, C)``: the update, without m. Parameters have the names of OpenFold's. The normalization of
    z has no bias, which the softmax would cancel.
    """

    reads: ClassVar[tuple[str, ...]] = ("msa", "msa_mask", "pair", "proteins")
    writes: ClassVar[tuple[str, ...]] = ("msa",)
    conformity: ClassVar[Conformity] = _PER_PROTEIN

    def __init__(
        self, fields: Mapping[str, FieldSpec], *, heads: int = 4, chunk: Annotated[int, Ge(1)] | None = None
    ) -> None:
        super().__init__(fields)
        width, pair, self.heads, self.chunk = msa_width(self), self.scalar_width("pair"), heads, chunk
        split_heads(width, heads)
        self.layer_norm_m, self.layer_norm_z = nn.LayerNorm(width), nn.LayerNorm(pair, bias=False)
        self.linear_z = nn.Linear(pair, heads, bias=False)
        self.linear_q, self.linear_k, self.linear_v = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.linear_o, self.linear_g = nn.Linear(width, width), gate_linear(width, width)
        self.declare(msa=self.fields["msa"].as_("msa"))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``msa (N, S, C)``: attention within each row of each protein."""
        proteins, x = f["proteins"], self.layer_norm_m(f["msa"])  # line 1
        biases = proteins.split_pairs(self.linear_z(self.layer_norm_z(f["pair"])))  # (L, L, H) each, line 3
        by_protein = zip(proteins.split(x), proteins.split(f["msa_mask"]), biases, strict=True)
        return {"msa": torch.cat([self._protein(*tensors) for tensors in by_protein])}

    def _protein(self, x: Tensor, mask: Tensor, bias: Tensor) -> Tensor:
        """Attend within the rows of one protein, ``(L, S, C)`` to ``(L, S, C)``."""
        q, k, v = (
            linear(x).unflatten(2, (self.heads, -1)).permute(1, 2, 0, 3)  # (S, H, L, D), line 2
            for linear in (self.linear_q, self.linear_k, self.linear_v)
        )
        hidden = _hidden(mask.t(), x.dtype)[:, None, None]  # (S, 1, 1, L)

        def within(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor, bias: Tensor, rows: slice) -> Tensor:
            return scaled_dot_product_attention(q[rows], k[rows], v[rows], attn_mask=hidden[rows] + bias)

        per_row = self.heads * len(x) ** 2
        tensors = q, k, v, hidden, bias.permute(2, 0, 1)
        out = torch.cat(run_in_chunks(within, tensors, q.size(0), per_row, _entries(self.chunk, per_row)))
        return self.linear_o(self.linear_g(x).sigmoid() * out.permute(2, 0, 1, 3).flatten(2))  # lines 4 to 6


class MsaColumnAttention(GraphLayer):
    """Attention of the sequences in each column (Jumper et al. 2021, algorithm 8).

    ``m'_si = W ‖_heads g_si ⊙ Σ_t softmax_t( q_si·k_ti / √d ) v_ti``; see ``msa_row_attention``.

    Parameters
    ----------
    heads : int
        Number of attention heads.
    chunk : int, optional
        Residues at a time, whose results are recomputed in the backward pass; None: as many as fit in 128 MB.

    Notes
    -----
    Reads: ``msa`` ``(N, S, C)``; ``msa_mask`` ``(N, S)``. Writes: ``msa`` ``(N, S, C)``: the update, without m. Columns
    of all proteins of a batch are computed together. Parameters have the names of OpenFold's.
    """

    reads: ClassVar[tuple[str, ...]] = ("msa", "msa_mask")
    writes: ClassVar[tuple[str, ...]] = ("msa",)
    conformity: ClassVar[Conformity] = _PER_NODE

    def __init__(
        self, fields: Mapping[str, FieldSpec], *, heads: int = 4, chunk: Annotated[int, Ge(1)] | None = None
    ) -> None:
        super().__init__(fields)
        width, self.heads, self.chunk = msa_width(self), heads, chunk
        split_heads(width, heads)
        self.layer_norm_m = nn.LayerNorm(width)
        self.linear_q, self.linear_k, self.linear_v = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.linear_o, self.linear_g = nn.Linear(width, width), gate_linear(width, width)
        self.declare(msa=self.fields["msa"].as_("msa"))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``msa (N, S, C)``: attention within each column."""
        x = self.layer_norm_m(f["msa"])  # line 1
        q, k, v = (
            linear(x).unflatten(2, (self.heads, -1)).transpose(1, 2)  # (N, H, S, D), line 2
            for linear in (self.linear_q, self.linear_k, self.linear_v)
        )
        hidden = _hidden(f["msa_mask"], x.dtype)[:, None, None]  # (N, 1, 1, S)

        def within(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor, columns: slice) -> Tensor:
            return scaled_dot_product_attention(q[columns], k[columns], v[columns], attn_mask=hidden[columns])

        per_column = self.heads * x.size(1) ** 2
        out = torch.cat(run_in_chunks(within, (q, k, v, hidden), len(x), per_column, _entries(self.chunk, per_column)))
        return {"msa": self.linear_o(self.linear_g(x).sigmoid() * out.transpose(1, 2).flatten(2))}  # lines 3 to 5


class MsaColumnGlobalAttention(GraphLayer):
    """Attention of the mean of a column to its sequences (Jumper et al. 2021, algorithm 19), linear in sequences.

    ``m'_si = W ‖_heads g_si ⊙ Σ_t softmax_t( q_i·k_ti / √d ) v_ti`` with ``q_i`` of the mean over sequences, and one
    head of keys and values.

    Parameters
    ----------
    heads : int
        Number of heads of queries.

    Notes
    -----
    Reads: ``msa`` ``(N, S, C)``; ``msa_mask`` ``(N, S)``. Writes: ``msa`` ``(N, S, C)``: the update, without m.
    Parameters have the names of OpenFold's.
    """

    reads: ClassVar[tuple[str, ...]] = ("msa", "msa_mask")
    writes: ClassVar[tuple[str, ...]] = ("msa",)
    conformity: ClassVar[Conformity] = _PER_NODE

    def __init__(self, fields: Mapping[str, FieldSpec], *, heads: int = 4) -> None:
        super().__init__(fields)
        width, self.heads = msa_width(self), heads
        channels = split_heads(width, heads)
        self.layer_norm_m = nn.LayerNorm(width)
        self.linear_q = nn.Linear(width, width, bias=False)
        self.linear_k, self.linear_v = (nn.Linear(width, channels, bias=False) for _ in range(2))
        self.linear_o, self.linear_g = nn.Linear(width, width), gate_linear(width, width)
        self.declare(msa=self.fields["msa"].as_("msa"))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``msa (N, S, C)``."""
        return {"msa": self.attend(self.layer_norm_m(f["msa"]), f["msa_mask"])}

    def attend(self, x: Tensor, mask: Tensor) -> Tensor:
        """Attend to normalized features, ``(N, S, C)`` and ``(N, S)`` to ``(N, S, C)``."""
        present = mask.to(x.dtype)
        mean = (x * present.unsqueeze(2)).sum(1) / (present.sum(1, keepdim=True) + 1e-10)  # (N, C)
        q = self.linear_q(mean).unflatten(1, (self.heads, -1))  # (N, H, D), line 3
        k, v = self.linear_k(x), self.linear_v(x)  # (N, S, D)
        logits = q @ k.transpose(1, 2) / q.size(2) ** 0.5 + _MASKED * (present - 1).unsqueeze(1)  # (N, H, S)
        out = (logits.softmax(2) @ v).flatten(1).unsqueeze(1)  # (N, 1, C), line 5
        return self.linear_o(self.linear_g(x).sigmoid() * out)  # lines 4, 6, 7


class MsaTransition(GraphLayer):
    """Perceptron of each residue of each sequence, ``m' = W relu(V norm(m))`` (Jumper et al. 2021, algorithm 9).

    Parameters
    ----------
    factor : int
        Width of the hidden layer, as a multiple of that of m.

    Notes
    -----
    Reads: ``msa`` ``(N, S, C)``. Writes: ``msa`` ``(N, S, C)``: the update, without m. Parameters have the names of
    OpenFold's.
    """

    reads: ClassVar[tuple[str, ...]] = ("msa",)
    writes: ClassVar[tuple[str, ...]] = ("msa",)
    conformity: ClassVar[Conformity] = _PER_NODE

    def __init__(self, fields: Mapping[str, FieldSpec], *, factor: Annotated[int, Ge(1)] = 4) -> None:
        super().__init__(fields)
        width = msa_width(self)
        self.layer_norm = nn.LayerNorm(width)
        self.linear_1, self.linear_2 = nn.Linear(width, factor * width), nn.Linear(factor * width, width)
        self.declare(msa=self.fields["msa"].as_("msa"))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``msa (N, S, C)``."""
        return {"msa": self.linear_2(self.linear_1(self.layer_norm(f["msa"])).relu())}


class MsaOuterProductMean(GraphLayer):
    """Pair features from an alignment, ``z_ij = W mean_s(a_si ⊗ b_sj) + c`` (Jumper et al. 2021, algorithm 10).

    ``a = A norm(m)`` and ``b = B norm(m)``; the mean is over the sequences that have both residues.

    Parameters
    ----------
    dim : int
        Width of z.
    hidden : int
        Width of a and b.
    chunk : int, optional
        Residues i at a time, whose results are recomputed in the backward pass; None: as many as fit in 128 MB.

    Notes
    -----
    Reads: ``msa`` ``(N, S, C)``; ``msa_mask`` ``(N, S)``; ``proteins``. Writes: ``pair`` ``(P, dim)``, ``dim x 0e``.
    Parameters have the names of OpenFold's; as there, the sum and c are divided by the number of sequences + 0.001.
    """

    reads: ClassVar[tuple[str, ...]] = ("msa", "msa_mask", "proteins")
    writes: ClassVar[tuple[str, ...]] = ("pair",)
    conformity: ClassVar[Conformity] = _PER_PROTEIN

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        dim: int = 32,
        hidden: int = 16,
        chunk: Annotated[int, Ge(1)] | None = None,
    ) -> None:
        super().__init__(fields)
        width, self.chunk = msa_width(self), chunk
        self.layer_norm = nn.LayerNorm(width)
        self.linear_1, self.linear_2 = nn.Linear(width, hidden), nn.Linear(width, hidden)
        self.linear_out = nn.Linear(hidden * hidden, dim)
        self.declare(pair=FieldSpec("pair", "pair", f"{dim}x0e"))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``pair (P, dim)``."""
        x, proteins = self.layer_norm(f["msa"]), f["proteins"]
        mask = f["msa_mask"].to(x.dtype)
        a, b = self.linear_1(x) * mask.unsqueeze(2), self.linear_2(x) * mask.unsqueeze(2)  # (N, S, c), line 2
        by_protein = zip(proteins.split(a), proteins.split(b), proteins.split(mask), strict=True)
        return {"pair": torch.cat([self._protein(*tensors).flatten(0, 1) for tensors in by_protein])}

    def _protein(self, a: Tensor, b: Tensor, mask: Tensor) -> Tensor:
        """Compute the pairs of one protein, ``(L, S, c)`` twice and ``(L, S)`` to ``(L, L, dim)``."""

        def of_rows(a: Tensor, b: Tensor, mask: Tensor, rows: slice) -> Tensor:
            outer = torch.einsum("isx,jsy->ijxy", a[rows], b).flatten(2)  # line 3
            return self.linear_out(outer) / (1e-3 + mask[rows] @ mask.t()).unsqueeze(2)  # line 4

        per_row = len(a) * a.size(2) ** 2
        return torch.cat(run_in_chunks(of_rows, (a, b, mask), len(a), per_row, _entries(self.chunk, per_row)))
