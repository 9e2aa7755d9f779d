"""Invariant point attention (Jumper et al. 2021)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from protgraph_plugins.ipa.frames import rigid_irreps
from torch import Tensor, nn
from torch.nn.functional import softplus

from protgraph.data.graph import Conformity, FieldSpec
from protgraph.errors import WiringError
from protgraph.nn import (
    LOOPS_OVER_PROTEINS,
    PAIR_FACTORS,
    DotProductAttention,
    GraphLayer,
    check_pair_factors,
    extend_by_factors,
    pair_term,
)

__all__ = ["IPA"]
ENTRY_POINTS = {"protgraph.layers": {"ipa": "IPA"}}


class IPA(GraphLayer):
    """Invariant point attention (Jumper et al. 2021).

    Each residue places points in its own frame, and attends to residues whose points are near: attention reads the
    structure, and rotations of the protein change nothing.

    ``h'_i = W [o_i, T_i⁻¹ ∘ ō_i, |T_i⁻¹ ∘ ō_i|, õ_i]``, sums over all j of the protein with weights
    ``softmax_j( √⅓ ( q_i·k_j / √c + b_ij − ½ γ √(2/9P) Σ_p |T_i ∘ q̄_ip − T_j ∘ k̄_jp|² ) )``.

    o, ō and õ are weighted sums of values, of points ``T_j ∘ v̄_jp`` and of pair features; T_i maps the frame of
    residue i to global coordinates. Pair features z_ij are those of all pairs; or of edges, then 0 for other pairs; or
    ``z_ij = a_i ⊙ b_j`` of two factors per residue, without a tensor of pairs.

    Parameters
    ----------
    dim, heads : int
        Width of the output; number of attention heads.
    channels : int
        c, channels of queries, keys and values per head.
    query_points, value_points : int
        Points per head and residue.
    unit : float
        Unit of length of points, Å.

    Notes
    -----
    Reads: ``h`` ``(N, C)`` scalars; ``proteins``. Optional: ``frame`` ``(N, 3, 3)``, axes as rows, and ``pos``
    ``(N, 3)``, Å, without which all residues are at the origin with the identity; ``pair`` ``(P, D)`` scalars or,
    instead, ``edges`` and ``edge_attr`` ``(E, D)`` scalars or ``pair_left`` and ``pair_right`` ``(N, D)`` scalars.
    Writes: ``h`` ``(N, dim)``, ``dim x 0e``, chiral: a frame is right-handed in a mirror image too.

    ``|a − b|²`` is expanded to ``|b|² − 2 a·b`` (``|a|²`` is constant over j), which turns it into dot-product
    attention with longer queries and keys. Factors extend them too. Memory is linear in residues, except with z of
    pairs or edges. Positions are centered first, for accuracy. A residue without a frame has all its points at its CA.

    Deviations from the paper: linear maps have biases, as in AlphaFold's code (except b_ij, where the softmax cancels
    it); the last one is not initialized to 0. Parameters have the names of OpenFold's.

    References
    ----------
    Jumper et al. 2021, doi:10.1038/s41586-021-03819-2, supplement, algorithm 22. Factors: Liu et al. 2025,
    arXiv:2505.11580 (FlashIPA).
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "proteins")
    optional: ClassVar[tuple[str, ...]] = ("frame", "pos", "pair", *PAIR_FACTORS, "edges", "edge_attr")
    writes: ClassVar[tuple[str, ...]] = ("h",)
    conformity: ClassVar[Conformity] = Conformity(expected_failures=LOOPS_OVER_PROTEINS)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        *,
        dim: int = 64,
        heads: int = 4,
        channels: int = 16,
        query_points: int = 4,
        value_points: int = 8,
        unit: float = 10.0,
    ) -> None:
        super().__init__(fields)
        width = self.scalar_width("h")
        self.pair = _pair_source(fields)
        rigid_irreps(self)
        self.heads = heads
        self.unit = unit
        self.points = (query_points, value_points)
        self.linear_q = nn.Linear(width, heads * channels)
        self.linear_kv = nn.Linear(width, heads * 2 * channels)
        self.linear_q_points = nn.Linear(width, 3 * heads * query_points)
        self.linear_kv_points = nn.Linear(width, 3 * heads * sum(self.points))
        pair = self.scalar_width(self.pair) if self.pair else 0
        self.linear_b = nn.Linear(pair, heads, bias=False) if pair else None
        self.head_weights = nn.Parameter(torch.full((heads,), 0.541324854612918))  # softplus⁻¹(1)
        self.linear_out = nn.Linear(heads * (channels + 4 * value_points + pair), dim)
        self.attention = DotProductAttention()
        self.conformity = type(self).conformity if self.pair in ("pair", "edge_attr") else Conformity()
        self.declare(h=FieldSpec("h", "node", f"{dim}x0e", chiral=True))

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``h (N, dim)`` by algorithm 22, attention by scalars, points in local frames, and pairs."""
        h = f["h"]
        n = len(h)
        frame, pos = self._frames(f)

        # Scalars and points of queries, keys and values; points in space, (N, H, 3, P).
        q = self.linear_q(h).view(n, self.heads, -1)  # (N, H, c)
        k, v = self.linear_kv(h).view(n, self.heads, -1).chunk(2, -1)
        q_points = _to_space(self.linear_q_points(h).view(n, 3, self.heads, -1), frame, pos)
        kv_points = _to_space(self.linear_kv_points(h).view(n, 3, self.heads, -1), frame, pos)
        k_points, v_points = kv_points.split(self.points, -1)

        # Line 7, q·k + γ (a·b − ½ |b|²) of points a and b, as one scalar product, which attention divides by √(its
        # length).
        strength = softplus(self.head_weights)[:, None] * (1 / (3 * (9 / 2) * self.points[0])) ** 0.5  # (H, 1)
        scaled_q = q * (1 / (3 * q.size(-1))) ** 0.5
        k_squared = k_points.square().sum((2, 3)).unsqueeze(-1)
        query = torch.cat([scaled_q, strength * q_points.flatten(2), (-strength / 2).expand(n, -1, 1)], -1)
        key = torch.cat([k, k_points.flatten(2), k_squared], -1)
        value = torch.cat([v, v_points.flatten(2)], -1)
        summed, pairs = self._attend(query, key, value, f)

        # Scalars, and points back in the frame of the residue: lines 8 and 10.
        scalars, points = summed.split([v.size(-1), v_points.size(2) * v_points.size(3)], -1)
        from_origin = points.unflatten(-1, (3, -1)) - pos[:, None, :, None]
        local = torch.einsum("nkx,nhxp->nkhp", frame, from_origin)
        norm = (local.square().sum(1) + 1e-8).sqrt()  # (N, H, P), AlphaFold's ε
        features = [scalars.flatten(1), local.flatten(1), norm.flatten(1), *pairs]
        return {"h": self.linear_out(torch.cat(features, 1))}  # line 11

    def _frames(self, f: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
        """Return axes ``(N, 3, 3)`` and centered origins ``(N, 3)``, in units of points; by default the identity."""
        h, proteins = f["h"], f["proteins"]
        identity = torch.eye(3, dtype=h.dtype, device=h.device).expand(len(h), 3, 3)
        frame = f.get("frame", identity)
        pos = f.get("pos", h.new_zeros(len(h), 3))
        center = proteins.mean(pos)
        return frame, (pos - proteins.expand(center)) / self.unit

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, f: Mapping[str, Any]) -> tuple[Tensor, list[Tensor]]:
        """Compute weighted sums of values, ``(N, H, ·)``, and of pair features, if any, ``(N, H D)``, line 9."""
        proteins = f["proteins"]
        if self.pair == "pair_left":
            q, k = extend_by_factors(q, k, f["pair_left"], f["pair_right"], self.linear_b.weight / 3**0.5)
            v = torch.cat([v, f["pair_right"].unsqueeze(1).expand(-1, self.heads, -1)], 2)
        q = q * q.size(-1) ** 0.5  # attention divides by it
        if self.pair is None:
            return self.attention(q, k, v, proteins), []
        if self.pair == "pair_left":
            return _factored_sum(self.attention(q, k, v, proteins), f["pair_left"])

        # Features of all pairs: 0 for those that are not edges.
        z = f[self.pair]
        if self.pair == "edge_attr":
            row = proteins.pair_index(f["edges"].index[1], f["edges"].index[0])
            z = z.new_zeros(proteins.num_pairs, z.size(1)).index_copy(0, row, z)

        bias = pair_term(self.linear_b.weight @ z.t() / 3**0.5)  # (H, P)
        weights = self.attention.weights(q, k, proteins, terms=[bias])  # (H, L, L) of each protein
        value_sums, pair_sums = [], []
        for weight, value, pair in zip(weights, proteins.split(v), proteins.split_pairs(z), strict=True):
            value_sums.append((weight @ value.transpose(0, 1)).transpose(0, 1))
            pair_sums.append(weight.transpose(0, 1) @ pair)
        return torch.cat(value_sums), [torch.cat(pair_sums).flatten(1)]


def _factored_sum(out: Tensor, left: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Return sums of values, and ``Σ_j α_ij z_ij = a_i ⊙ Σ_j α_ij b_j``, whose sums are the last columns of ``out``."""
    value, right = out.split([out.size(2) - left.size(1), left.size(1)], 2)
    return value, [(left.unsqueeze(1) * right).flatten(1)]


def _to_space(points: Tensor, frame: Tensor, pos: Tensor) -> Tensor:
    """Map points from the frames of their residues, ``T_i ∘ p``: ``(N, 3, H, P)`` to ``(N, H, 3, P)``."""
    return torch.einsum("nkx,nkhp->nhxp", frame, points) + pos[:, None, :, None]


def _pair_source(fields: Mapping[str, FieldSpec]) -> str | None:
    """Return the field that has the pair features, or their left factors."""
    sources = [name for name in ("pair", "edges", "pair_left") if name in fields]
    check_pair_factors(fields)
    if ("edges" in fields) != ("edge_attr" in fields) or len(sources) > 1:
        raise WiringError(
            "ipa reads pair features from 'pair', from 'edges' and 'edge_attr', or from 'pair_left' and 'pair_right'. "
            "Wire one of them."
        )
    if "pair" in fields and fields["pair"].level != "pair":
        raise WiringError(
            f"ipa reads 'pair' per pair, but {fields['pair'].name!r} is a field per {fields['pair'].level}"
        )
    return next((name for name in ("pair", "edge_attr", "pair_left") if name in fields), None)
