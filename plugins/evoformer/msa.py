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
        has_deletion = count.clamp(max=1)
        deletion_value = (count / 3).atan() * (2 / pi)
        deletions = torch.stack([has_deletion, deletion_value], -1)  # (N, S, 2)
        target = self.target(f["aatype"]).unsqueeze(1)  # (N, 1, dim)
        msa = self.types(types) + self.deletions(deletions) + target
        return {"msa": msa, "msa_mask": types != ABSENT}


class GatedMsaAttention(GraphLayer):
    """Base class of the attentions within the rows and within the columns of an alignment.

    Both attend within sets of T elements: the residues of a sequence, or the sequences of a column.
    """

    writes: ClassVar[tuple[str, ...]] = ("msa",)

    def _add_maps(self, width: int, heads: int, chunk: int | None) -> None:
        """Add the linear maps of queries, keys, values, output and gate."""
        split_heads(width, heads)
        self.heads = heads
        self.chunk = chunk
        self.linear_q = nn.Linear(width, width, bias=False)
        self.linear_k = nn.Linear(width, width, bias=False)
        self.linear_v = nn.Linear(width, width, bias=False)
        self.linear_o = nn.Linear(width, width)
        self.linear_g = gate_linear(width, width)
        self.declare(msa=self.fields["msa"].as_("msa"))

    def _by_head(self, x: Tensor) -> Tensor:
        """Separate the heads, ``(…, C)`` to ``(…, H, D)``."""
        return x.unflatten(2, (self.heads, -1))

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, hidden: Tensor, bias: Tensor | None = None) -> Tensor:
        """Attend within B sets, ``(B, H, T, D)``, some sets at a time.

        ``hidden`` ``(B, 1, 1, T)`` and ``bias`` ``(H, T, T)`` are added to the logits.
        """

        def within(q: Tensor, k: Tensor, v: Tensor, hidden: Tensor, sets: slice) -> Tensor:
            term = hidden[sets]
            if bias is not None:
                term = term + bias
            return scaled_dot_product_attention(q[sets], k[sets], v[sets], attn_mask=term)

        per_set = self.heads * q.size(2) ** 2
        return torch.cat(run_in_chunks(within, (q, k, v, hidden), len(q), per_set, _entries(self.chunk, per_set)))


class MsaRowAttention(GatedMsaAttention):
    """Attention of the residues of each sequence, biased by pairs (Jumper et al. 2021, algorithm 7).

    It brings what the pair features say about contacts into the alignment.
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
    conformity: ClassVar[Conformity] = _PER_PROTEIN

    def __init__(
        self, fields: Mapping[str, FieldSpec], *, heads: int = 4, chunk: Annotated[int, Ge(1)] | None = None
    ) -> None:
        super().__init__(fields)
        width = msa_width(self)
        pair_width = self.scalar_width("pair")
        self.layer_norm_m = nn.LayerNorm(width)
        self.layer_norm_z = nn.LayerNorm(pair_width, bias=False)
        self.linear_z = nn.Linear(pair_width, heads, bias=False)
        self._add_maps(width, heads, chunk)

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``msa (N, S, C)``: attention within each row of each protein."""
        proteins = f["proteins"]
        features = proteins.split(self.layer_norm_m(f["msa"]))  # line 1
        masks = proteins.split(f["msa_mask"])
        biases = proteins.split_pairs(self.linear_z(self.layer_norm_z(f["pair"])))  # (L, L, H) each, line 3
        updates = [self._protein(x, mask, bias) for x, mask, bias in zip(features, masks, biases, strict=True)]
        return {"msa": torch.cat(updates)}

    def _protein(self, x: Tensor, mask: Tensor, bias: Tensor) -> Tensor:
        """Attend within the rows of one protein, ``(L, S, C)`` to ``(L, S, C)``."""
        q = self._by_head(self.linear_q(x)).permute(1, 2, 0, 3)  # (S, H, L, D), line 2
        k = self._by_head(self.linear_k(x)).permute(1, 2, 0, 3)
        v = self._by_head(self.linear_v(x)).permute(1, 2, 0, 3)
        hidden = _hidden(mask.t(), x.dtype)[:, None, None]  # (S, 1, 1, L)
        values = self._attend(q, k, v, hidden, bias.permute(2, 0, 1))
        gate = self.linear_g(x).sigmoid()
        return self.linear_o(gate * values.permute(2, 0, 1, 3).flatten(2))  # lines 4 to 6


class MsaColumnAttention(GatedMsaAttention):
    """Attention of the sequences in each column (Jumper et al. 2021, algorithm 8).

    It lets the sequences exchange what they say about a residue, the protein's own included.
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
        width = msa_width(self)
        self.layer_norm_m = nn.LayerNorm(width)
        self._add_maps(width, heads, chunk)

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``msa (N, S, C)``: attention within each column."""
        x = self.layer_norm_m(f["msa"])  # line 1
        q = self._by_head(self.linear_q(x)).transpose(1, 2)  # (N, H, S, D), line 2
        k = self._by_head(self.linear_k(x)).transpose(1, 2)
        v = self._by_head(self.linear_v(x)).transpose(1, 2)
        hidden = _hidden(f["msa_mask"], x.dtype)[:, None, None]  # (N, 1, 1, S)
        values = self._attend(q, k, v, hidden)
        gate = self.linear_g(x).sigmoid()
        return {"msa": self.linear_o(gate * values.transpose(1, 2).flatten(2))}  # lines 3 to 5


class MsaColumnGlobalAttention(GraphLayer):
    """Attention of the mean of a column to its sequences (Jumper et al. 2021, algorithm 19), linear in sequences.

    For thousands of sequences, whose attention to each other would take their square in time and memory.
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
        width = msa_width(self)
        self.heads = heads
        channels = split_heads(width, heads)
        self.layer_norm_m = nn.LayerNorm(width)
        self.linear_q = nn.Linear(width, width, bias=False)
        self.linear_k = nn.Linear(width, channels, bias=False)
        self.linear_v = nn.Linear(width, channels, bias=False)
        self.linear_o = nn.Linear(width, width)
        self.linear_g = gate_linear(width, width)
        self.declare(msa=self.fields["msa"].as_("msa"))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``msa (N, S, C)``."""
        return {"msa": self.attend(self.layer_norm_m(f["msa"]), f["msa_mask"])}

    def attend(self, x: Tensor, mask: Tensor) -> Tensor:
        """Attend to normalized features, ``(N, S, C)`` and ``(N, S)`` to ``(N, S, C)``."""
        # Mean over the present sequences, (N, C).
        present = mask.to(x.dtype)
        count = present.sum(1, keepdim=True) + 1e-10
        mean = (x * present.unsqueeze(2)).sum(1) / count

        # Attention of the mean to the sequences.
        q = self.linear_q(mean).unflatten(1, (self.heads, -1))  # (N, H, D), line 3
        k = self.linear_k(x)  # (N, S, D)
        v = self.linear_v(x)
        logits = q @ k.transpose(1, 2) / q.size(2) ** 0.5  # (N, H, S)
        weight = (logits + _hidden(mask, x.dtype).unsqueeze(1)).softmax(2)
        values = (weight @ v).flatten(1).unsqueeze(1)  # (N, 1, C), line 5

        gate = self.linear_g(x).sigmoid()
        return self.linear_o(gate * values)  # lines 4, 6, 7


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
        self.linear_1 = nn.Linear(width, factor * width)
        self.linear_2 = nn.Linear(factor * width, width)
        self.declare(msa=self.fields["msa"].as_("msa"))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``msa (N, S, C)``."""
        hidden = self.linear_1(self.layer_norm(f["msa"])).relu()
        return {"msa": self.linear_2(hidden)}


class MsaOuterProductMean(GraphLayer):
    """Pair features from an alignment, ``z_ij = W mean_s(a_si ⊗ b_sj) + c`` (Jumper et al. 2021, algorithm 10).

    Residues in contact vary together over the sequences: the mean outer product is their covariance.
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
        width = msa_width(self)
        self.chunk = chunk
        self.layer_norm = nn.LayerNorm(width)
        self.linear_1 = nn.Linear(width, hidden)
        self.linear_2 = nn.Linear(width, hidden)
        self.linear_out = nn.Linear(hidden * hidden, dim)
        self.declare(pair=FieldSpec("pair", "pair", f"{dim}x0e"))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``pair (P, dim)``."""
        proteins = f["proteins"]
        x = self.layer_norm(f["msa"])
        mask = f["msa_mask"].to(x.dtype)
        a = self.linear_1(x) * mask.unsqueeze(2)  # (N, S, c), line 2
        b = self.linear_2(x) * mask.unsqueeze(2)
        pairs = []
        for tensors in zip(proteins.split(a), proteins.split(b), proteins.split(mask), strict=True):
            pairs.append(self._protein(*tensors).flatten(0, 1))
        return {"pair": torch.cat(pairs)}

    def _protein(self, a: Tensor, b: Tensor, mask: Tensor) -> Tensor:
        """Compute the pairs of one protein, ``(L, S, c)`` twice and ``(L, S)`` to ``(L, L, dim)``."""

        def of_rows(a: Tensor, b: Tensor, mask: Tensor, rows: slice) -> Tensor:
            outer = torch.einsum("isx,jsy->ijxy", a[rows], b).flatten(2)  # line 3
            sequences = 1e-3 + mask[rows] @ mask.t()  # that have both residues
            return self.linear_out(outer) / sequences.unsqueeze(2)  # line 4

        per_row = len(a) * a.size(2) ** 2
        return torch.cat(run_in_chunks(of_rows, (a, b, mask), len(a), per_row, _entries(self.chunk, per_row)))
