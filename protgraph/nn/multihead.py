"""Multi-head attention with optional positions, pair biases, gates, masks and causal order."""

# Not torch.nn.MultiheadAttention on padded batches: 1.8 times the time (torch 2.13, one thread, 2026-11-22).

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from protgraph.data.graph.conformity import Conformity
from protgraph.data.graph.fields import FieldSpec
from protgraph.errors import OptionError, WiringError
from protgraph.nn.dot_product_attention import DotProductAttention, PairTerm, pair_term
from protgraph.nn.mlp import gate_linear
from protgraph.nn.positional_encoding import (
    CHAINS_IN_ORDER,
    OffsetBias,
    PositionCode,
    position_index,
    rotary_code,
    rotate,
)
from protgraph.ops import Proteins
from protgraph.validation import check_choice

__all__ = [
    "CAUSAL",
    "LearnedQueries",
    "MultiHeadAttention",
    "PAIR_FACTORS",
    "check_pair_factors",
    "extend_by_factors",
    "split_heads",
]

# A bias W (a_i ⊙ b_j) is a scalar product (w ⊙ a_i) · b_j: factors extend queries and keys, in linear memory.
#: Local names of the factors a and b.
PAIR_FACTORS = ("pair_left", "pair_right")


def check_pair_factors(fields: Mapping[str, FieldSpec]) -> int:
    """Return the width of the factors, 0 if they are not wired.

    Raises :class:`WiringError` if one of them is missing, or they are not scalars of nodes of equal width.
    """
    wired = [name for name in PAIR_FACTORS if name in fields]
    if not wired:
        return 0
    if len(wired) == 1:
        raise WiringError(f"pair features of factors need {PAIR_FACTORS}, but only {wired[0]!r} is wired. Wire both.")
    specs = [fields[name] for name in PAIR_FACTORS]
    if any(spec.level != "node" or not spec.is_scalar for spec in specs) or specs[0].dim != specs[1].dim:
        found = ", ".join(f"{name!r} of {s.irreps} per {s.level}" for name, s in zip(PAIR_FACTORS, specs, strict=True))
        raise WiringError(f"pair features of factors: {found}. Both must be scalars per node, of equal width.")
    return specs[0].dim


def extend_by_factors(q: Tensor, k: Tensor, left: Tensor, right: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Extend queries and keys, so that ``q'_i · k'_j = q_i · k_j + W (a_i ⊙ b_j)`` for each head.

    ``q``, ``k``: ``(N, H, D)`` each. ``left``, ``right``: factors a and b, ``(N, R)`` each. ``weight``: W, ``(H, R)``.
    Returns ``(N, H, D + R)`` each.
    """
    each = right.unsqueeze(1).expand(-1, q.size(1), -1)
    return torch.cat([q, left.unsqueeze(1) * weight], 2), torch.cat([k, each], 2)


#: Expected failure of causal layers in the conformity suite.
CAUSAL = {"node_order": "causal: a node depends on earlier nodes only, so the order of nodes is an input"}


class MultiHeadAttention(nn.Module):
    """Multi-head attention within each protein; part of a layer, which passes on its wired fields.

    ``h'_i = W_o [ g_i ⊙ Σ_j softmax_j( q_i·k_j / √d + b_ij ) v_j ]`` over heads, j over the nodes of the protein of i.

    ``fields``: specs of the wired input fields. ``width``: width of the input h. The other options are those of the
    layer :class:`~protgraph.nn.layers.attention.Attention`. Optional fields:

    * ``context`` ``(N, C)`` scalars: keys and values come from it instead of h;
    * ``seq_pos`` ``(N,)``, with ``chain`` ``(N,)`` to distinguish chains: positions;
    * ``pair`` ``(P, C)`` scalars of pairs: ``b_ij = W z_ij``;
    * ``pair_left`` and ``pair_right`` ``(N, R)`` scalars a and b: the same for ``z_ij = a_i ⊙ b_j``, a bias of rank R,
      without a tensor of pairs;
    * ``edges``: a learned bias per head for pairs that are edges, plus ``W e_ij`` of ``edge_attr`` ``(E, C)`` scalars;
    * ``mask`` bool: ``(N,)`` visible nodes or ``(P,)`` visible pairs.

    With rotary positions, the chains of a protein follow each other in the order of their numbers. Otherwise chains
    have no order.

    References
    ----------
    Vaswani et al. 2017, arXiv:1706.03762, sec. 3.2. Pair bias and gate: Jumper et al. 2021,
    doi:10.1038/s41586-021-03819-2, supplement, algorithm 7.
    """

    optional: ClassVar[tuple[str, ...]] = (
        "context",
        "seq_pos",
        "chain",
        "pair",
        *PAIR_FACTORS,
        "edges",
        "edge_attr",
        "mask",
    )
    conformity = Conformity(inputs={"mask": FieldSpec("mask", "node", "1x0e", "bool", shape=())})

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        width: int,
        *,
        dim: int,
        heads: int,
        position: str | None = None,
        gate: bool = False,
        causal: bool = False,
        bias: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        _check_wiring(fields, position)
        self.heads, channels = heads, split_heads(dim, heads)
        self.query = nn.Linear(width, dim, bias=bias)
        context = fields["context"].dim if "context" in fields else width
        self.key_value = nn.Linear(context, 2 * dim, bias=bias)
        self.out = nn.Linear(dim, dim)
        self.gate = gate_linear(width, dim) if gate else None
        self.pair = _bias_map(fields, "pair", heads)
        factors = check_pair_factors(fields)
        self.pair_factors = nn.Linear(factors, heads, bias=False) if factors else None
        self.edge = nn.Parameter(torch.zeros(heads, 1)) if "edges" in fields else None
        self.edge_attr = _bias_map(fields, "edge_attr", heads)
        self.rotary = False
        self.offset: OffsetBias | None = None
        if "seq_pos" in fields and position == "offset":
            self.offset = OffsetBias(heads, chains="chain" in fields)
        elif "seq_pos" in fields:
            self.rotary = True
            if channels % 2:
                raise OptionError(f"dim={dim}, heads={heads}: rotary positions need even dim / heads, not {channels}.")
        self.mask_level = fields["mask"].level if "mask" in fields else None
        self.attention = DotProductAttention(causal=causal, dropout=dropout)
        failures = _expected_failures(causal=causal, needs_order=self.rotary and "chain" in fields)
        self.conformity = replace(self.conformity, expected_failures=failures)

    def forward(self, h: Tensor, f: Mapping[str, Any]) -> Tensor:
        """Attend: ``(N, width)`` to ``(N, dim)``; ``f`` holds ``proteins`` and the optional fields."""
        q, k, v = self._project(h, f)
        out = self.attention(q, k, v, f["proteins"], **self._options(f)).flatten(1)  # (N, dim)
        if self.gate is not None:
            out = self.gate(h).sigmoid() * out
        return self.out(out)

    def weights(self, h: Tensor, f: Mapping[str, Any]) -> list[Tensor]:
        """Compute the attention weights of ``h (N, width)``, ``(H, L, L)`` per protein; row i, column j."""
        q, k, _ = self._project(h, f)
        return self.attention.weights(q, k, f["proteins"], **self._options(f))

    def _with_factors(self, q: Tensor, k: Tensor, f: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
        """Add the bias of pair factors to the scalar products, which attention divides by √(their length)."""
        if self.pair_factors is None:
            return q, k
        width = q.size(2)
        scaled = (width + f["pair_left"].size(1)) ** 0.5
        weight = scaled * self.pair_factors.weight
        left, right = (f[name] for name in PAIR_FACTORS)
        return extend_by_factors(q * (scaled / width**0.5), k, left, right, weight)

    def position_code(self, length: int) -> PositionCode | None:
        """Return the rotary angles; an offset bias returns its own code."""
        if not self.rotary:
            return None
        return rotary_code(length, self.query.out_features // self.heads)

    def _project(self, h: Tensor, f: Mapping[str, Any]) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values, ``(N, H, D)``, with their positions."""
        key_value = self.key_value(f.get("context", h)).unflatten(1, (2, self.heads, -1))
        k, v = key_value.unbind(1)
        q = self.query(h).unflatten(1, (self.heads, -1))
        if self.rotary:
            index = position_index(f["seq_pos"], f["proteins"], f.get("chain"))
            q = rotate(q, index)
            k = rotate(k, index)
        q, k = self._with_factors(q, k, f)
        return q, k, v

    def _options(self, f: Mapping[str, Any]) -> dict[str, Any]:
        """Return terms of the logits and the mask."""
        options: dict[str, Any] = {"terms": self._terms(f)}
        if self.mask_level == "node":
            options["key_mask"] = f["mask"]
        elif self.mask_level is not None:
            options["mask"] = f["mask"]
        return options

    def _terms(self, f: Mapping[str, Any]) -> list[PairTerm]:
        terms = []
        if self.pair is not None:
            terms.append(pair_term(self.pair.weight @ f["pair"].t()))  # (H, P)
        if self.edge is not None:
            edges, proteins = f["edges"], f["proteins"]
            values = self.edge.expand(-1, edges.num_edges)  # (H, E)
            if self.edge_attr is not None:
                values = values + self.edge_attr.weight @ f["edge_attr"].t()
            pairs = proteins.pair_index(edges.index[1], edges.index[0])
            zeros = values.new_zeros(self.heads, proteins.num_pairs)
            terms.append(pair_term(zeros.index_copy(1, pairs, values)))
        if self.offset is not None:
            terms.append(self.offset(f["seq_pos"], f.get("chain")))
        return terms


def split_heads(dim: int, heads: int) -> int:
    """Return the channels per head, ``dim / heads``.

    Raises :class:`OptionError` if ``dim`` is not a multiple of ``heads``.
    """
    if heads < 1 or dim % heads:
        raise OptionError(f"dim={dim} is not a multiple of heads={heads}: each head takes dim / heads channels.")
    return dim // heads


class LearnedQueries(nn.Module):
    """Attention pooling of each protein by Q learned queries.

    ``W [o_1, …, o_Q]`` with ``o_m = Σ_i softmax_i( q_m·k_i / √d ) v_i``.

    ``width``: width of the nodes and of the output. ``queries``: Q.

    References
    ----------
    Lee et al. 2019, arXiv:1810.00825, eq. 11 (pooling by attention, without its feed-forward parts); Jaegle et al.
    2021, arXiv:2103.03206, sec. 3.1.
    """

    def __init__(self, width: int, *, queries: int = 4) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.randn(queries, width))
        self.key_value = nn.Linear(width, 2 * width)
        self.out = nn.Linear(queries * width, width)
        self.attention = DotProductAttention()

    def forward(self, h: Tensor, proteins: Proteins) -> Tensor:
        """Pool ``(N, C)`` to ``(B, C)``."""
        count, b = len(self.queries), len(proteins)
        batch = torch.arange(b, device=h.device).unsqueeze(1).expand(b, count).flatten()
        of_queries = Proteins(batch, (count,) * b, padded=proteins.padded)
        q = self.queries.unsqueeze(1).repeat(b, 1, 1)  # (B Q, 1, C)
        k, v = self.key_value(h).unsqueeze(1).chunk(2, -1)
        return self.out(self.attention(q, k, v, of_queries, keys=proteins).view(b, -1))


def _expected_failures(*, causal: bool, needs_order: bool) -> Mapping[str, str]:
    if causal:
        return CAUSAL
    return CHAINS_IN_ORDER if needs_order else {}


def _bias_map(fields: Mapping[str, FieldSpec], name: str, heads: int) -> nn.Linear | None:
    """Return the map from a wired field to a bias per head; without constants, which the softmax cancels over j."""
    return nn.Linear(fields[name].dim, heads, bias=False) if name in fields else None


def _check_wiring(fields: Mapping[str, FieldSpec], position: str | None) -> None:
    _check_fields(fields)
    for name, needed in (("edge_attr", "edges"), ("chain", "seq_pos")):
        if name in fields and needed not in fields:
            raise WiringError(f"attention reads {name!r} together with {needed!r}. Wire both.")
    if position is not None and "seq_pos" not in fields:
        raise WiringError(f"attention has position={position!r} but no positions. Wire reads={{'seq_pos': 'seq_pos'}}.")
    if position is not None:
        check_choice("position", position, ("rotary", "offset"))


def _check_fields(fields: Mapping[str, FieldSpec]) -> None:
    """Check the level and the kind of values of the optional fields."""
    levels = {"context": "node", "pair": "pair", "edge_attr": "edge"}
    wired = [name for name in levels if name in fields]
    for name in wired:
        if not fields[name].is_scalar:
            raise WiringError(f"attention reads {name!r} as scalars, but it is {fields[name].irreps}")
    for name in wired:
        if fields[name].level != levels[name]:
            level = fields[name].level
            raise WiringError(f"attention reads {name!r} per {levels[name]}, but it is a field per {level}")
    mask = fields.get("mask")
    if mask is not None and (mask.dtype != "bool" or mask.level not in ("node", "pair")):
        raise WiringError(f"attention reads 'mask' as a bool field of nodes or pairs, but it is {mask}.")
