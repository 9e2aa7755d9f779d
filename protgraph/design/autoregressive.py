"""Sample sequences autoregressively: each step decodes one residue of every sequence of every protein."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from protgraph.design.constraint import Constraints
from protgraph.design.decode import Decoding
from protgraph.design.decoding_order import decoding_ranks, random_decoding_order, tie_order
from protgraph.errors import OptionError
from protgraph.ops import Proteins

__all__ = ["SampledSequences", "check_temperature", "random_deviates", "sample_sequences"]

_SEEDS = 2**63  # number of seeds of torch.Generator


@dataclass(frozen=True, eq=False)
class SampledSequences:
    """S sequences for the N residues of a batch.

    Parameters
    ----------
    aatype : Tensor
        ``(S, N)`` int64; residues that were not designed keep their types.
    log_probs : Tensor
        ``(S, N, types)``: log-probabilities of the model given the types before each residue, without constraints.
    probabilities : Tensor
        ``(S, N, types)``: probabilities that types were sampled from; 0 where none was sampled.
    order : Tensor
        ``(S, N)`` int64, nodes in decoding order, protein after protein.
    """

    aatype: Tensor
    log_probs: Tensor
    probabilities: Tensor
    order: Tensor

    def score(self, mask: Tensor, proteins: Proteins) -> Tensor:
        """Return ``(S, B)``: mean of ``-log p`` over the residues of each protein in the mask ``(N,)``.

        Types that the model does not predict, e.g. X, are left out.
        """
        counted = mask & (self.aatype < self.log_probs.size(2))  # (S, N)
        loss = -self.log_probs.gather(2, self.aatype.where(counted, 0)[..., None])[..., 0] * counted
        return proteins.sum(loss.t()).t() / proteins.sum(counted.to(loss.dtype).t()).t()


def random_deviates(sizes: Sequence[int], copies: Iterable[int], *, seed: int) -> tuple[Tensor, Tensor]:
    """Return normal deviates for orders and uniform deviates for types, both ``(S, N)`` float64, on the CPU.

    ``copies`` are sequence numbers. The deviates of a sequence of a protein do not depend on what else is decoded.
    """
    normal, uniform = [], []
    for copy in copies:
        per_protein = []
        for size in sizes:
            generator = torch.Generator().manual_seed((seed * 1_000_003 + copy) % _SEEDS)
            noise = torch.randn(size, generator=generator, dtype=torch.float64)
            per_protein.append((noise, torch.rand(size, generator=generator, dtype=torch.float64)))
        normal.append(torch.cat([a for a, _ in per_protein]))
        uniform.append(torch.cat([b for _, b in per_protein]))
    return torch.stack(normal), torch.stack(uniform)


@torch.no_grad()
def sample_sequences(
    decoding: Decoding,
    constraints: Constraints,
    *,
    copies: int = 1,
    temperature: float = 0.1,
    seed: int = 0,
    order: Tensor | None = None,
    uniform: Tensor | None = None,
) -> SampledSequences:
    """Sample sequences, each residue from the model's probabilities given the residues decoded before it.

    Parameters
    ----------
    decoding : Decoding
    constraints : Constraints
    copies : int
        S, number of sequences per protein.
    temperature : float
        Divides the logits; 0 takes the most probable type.
    seed : int
        Seed of orders and types. A sequence of a protein does not depend on what else is decoded.
    order : Tensor, optional
        ``(S, N)`` int64, nodes in decoding order, protein after protein, fixed ones first; random by default.
    uniform : Tensor, optional
        ``(S, N)`` numbers from 0 to 1 that select types from their cumulative probabilities.

    Raises
    ------
    OptionError
        ``copies`` below 1, an invalid temperature, or an order with a designed residue before a fixed one.

    Notes
    -----
    Each step computes one row per sequence and protein; the contributions of edges and nodes to messages are cached.
    Tied residues are decoded one after the other. They use each other's positions but not types, as in ProteinMPNN. A
    tied residue without a backbone contributes no logits and gets the type of the group.
    """
    if copies < 1:
        raise OptionError(f"invalid copies: {copies}. Use an integer from 1.")
    check_temperature(temperature)
    proteins, device = decoding.proteins, decoding.aatype.device
    constraints = constraints.shared()
    designed = constraints.designed & decoding.decodable
    normal, default_uniform = random_deviates(proteins.sizes, range(copies), seed=seed)
    if order is None:
        order = random_decoding_order(designed, proteins, normal.to(device))
    decodable = set(decoding.decodable.nonzero().flatten().tolist()) if constraints.groups else set()
    groups = [nodes for g in constraints.groups if (nodes := [node for node in g if node in decodable])]
    if groups:
        order = torch.stack([tie_order(one, groups) for one in order])
    _check_order(order, designed, decoding)
    uniform = default_uniform.to(device) if uniform is None else uniform
    run = _Run(decoding, constraints, designed, order, uniform, temperature)
    for nodes, rows, closes in _schedule(order, designed, proteins, groups):
        run.step(nodes, rows, closes)
    probabilities = run.probabilities.view(copies, len(designed), -1)
    return SampledSequences(run.aatype.view(copies, -1), run.log_probs(), probabilities, order)


def check_temperature(temperature: float) -> None:
    """Raise an ``OptionError`` unless a temperature is finite and not negative."""
    if not 0 <= temperature < math.inf:
        raise OptionError(f"invalid temperature: {temperature:g}. Use a number from 0 (the most probable type).")


def _check_order(order: Tensor, designed: Tensor, decoding: Decoding) -> None:
    """Check that designed residues follow fixed ones in every protein, among decodable residues."""
    rank, n = decoding_ranks(order, decoding.proteins), len(designed)  # (S, N)
    protein = decoding.proteins.batch.expand_as(rank)
    last = rank.masked_fill(designed | ~decoding.decodable, -1)
    first = rank.masked_fill(~designed, n)
    last = last.new_full((len(rank), len(decoding.proteins.sizes)), -1).scatter_reduce(1, protein, last, "amax")
    first = first.new_full(last.shape, n).scatter_reduce(1, protein, first, "amin")
    if bool((last > first).any()):
        raise OptionError(
            "invalid decoding order: a designed residue comes before a fixed one. Decode fixed ones first."
        )


class _Run:
    """State of a sampling run; rows are numbered ``copy · N + node``."""

    def __init__(
        self,
        decoding: Decoding,
        constraints: Constraints,
        designed: Tensor,
        order: Tensor,
        uniform: Tensor,
        temperature: float,
    ) -> None:
        self.decoding, self.constraints, self.temperature = decoding, constraints, temperature
        self.copies, n = order.shape
        device = order.device
        self.uniform, self.aatype = uniform.flatten(), decoding.aatype.repeat(self.copies)  # (S N,)
        self.state = decoding.start(self.copies)
        self.h = decoding.fields["h"].new_zeros(self.copies * n, decoding.fields["h"].size(1))
        fixed, rank = ~designed & decoding.decodable, decoding_ranks(order, decoding.proteins)
        if bool(fixed.any()):
            designed_rows = designed.nonzero().flatten()
            for copy in range(self.copies):  # fixed residues come first: their rows depend on each other only
                start = copy * n
                h = decoding.decoder.teacher_force(self.state, decoding.aatype, rank[copy], copy=copy)
                self.h[start : start + n] = h
                decoding.decoder.reset(self.state, designed_rows + start)
        self.group = torch.arange(n, device=device)  # first node of the group of each node
        self.share = torch.ones(n, dtype=self.h.dtype, device=device)  # weight of each node's logits in its group
        if constraints.tie_weight is not None:
            self.share.copy_(constraints.tie_weight)
        for members in constraints.groups:
            self.group[list(members)] = members[0]
            self.share[list(members)] /= max(int(decoding.decodable[list(members)].sum()), 1)
        self.members = {g[0]: torch.tensor(g, device=device) for g in constraints.groups}
        self.sums = torch.zeros(0, device=device)
        types = decoding.head(self.h[:1]).size(1)
        self.probabilities = self.h.new_zeros(self.copies * n, types)
        if constraints.groups:
            self.sums = self.h.new_zeros(self.copies * n, types)

    def step(self, nodes: Tensor, rows: Tensor, closes: Tensor | None) -> None:
        """Compute one row of some copies, and sample types where a group is complete."""
        decoder = self.decoding.decoder
        h = decoder.decode_step(self.state, rows)
        self.h.index_copy_(0, rows, h)
        logits = self.decoding.head(h)
        if closes is not None:
            total = rows - nodes + self.group[nodes]
            self.sums.index_add_(0, total, logits * self.share[nodes, None])
            rows, nodes = rows[closes], nodes[closes]
            logits = self.sums[total[closes]]
            if len(rows) == 0:
                return
        p = self.constraints.probabilities(logits, nodes, self.temperature)
        below = p.cumsum(1)
        limit = (self.uniform[rows].to(p.dtype) * below[:, -1]).unsqueeze(1)
        last = (below < below[:, -1:]).sum(1)  # (R,) the last possible type: 1 - 1e-9 is 1 in float32
        types = torch.minimum(torch.searchsorted(below, limit, right=True).flatten(), last)  # (R,)
        if closes is not None:
            rows, types, p = self._whole_groups(rows, nodes, types, p)
        self.aatype[rows] = types
        self.probabilities[rows] = p
        decoder.commit(self.state, rows, types)

    def _whole_groups(self, rows: Tensor, nodes: Tensor, types: Tensor, p: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return rows, types and probabilities of all members of the groups that end with these rows."""
        whole = [
            self.members.get(first, node[None]) for first, node in zip(self.group[nodes].tolist(), nodes, strict=True)
        ]
        times = torch.tensor([len(w) for w in whole], device=rows.device)
        members = torch.cat(whole) + (rows - nodes).repeat_interleave(times)
        return members, types.repeat_interleave(times), p.repeat_interleave(times, 0)

    def log_probs(self) -> Tensor:
        """Return the log-probabilities ``(S, N, types)`` of all rows."""
        return self.decoding.head(self.h).log_softmax(-1).view(self.copies, len(self.group), -1)


def _schedule(
    order: Tensor, designed: Tensor, proteins: Proteins, groups: Sequence[Sequence[int]]
) -> list[tuple[Tensor, Tensor, Tensor | None]]:
    """Return nodes ``(R,)`` and rows ``(R,)`` of each step and, with ties, a mask of the rows that complete a group."""
    copies, n = order.shape
    is_designed = designed[order]  # (S, N)
    place = is_designed.cumsum(1) - 1  # fixed residues come first in each protein
    start = proteins.sum(designed.long()).cumsum(0) - proteins.sum(designed.long())
    step = place - start[proteins.batch]  # index among the designed residues of the protein
    copy, at = is_designed.nonzero(as_tuple=True)
    node, when = order[copy, at], step[copy, at]
    rows = copy * n + node
    closes = None
    if groups:
        last = torch.ones(copies, n, dtype=torch.bool, device=order.device)
        group = torch.arange(n, device=order.device)
        for members in groups:
            group[list(members)] = members[0]
        last[:, :-1] = group[order[:, 1:]] != group[order[:, :-1]]
        closes = last[copy, at]
    by_step = when.argsort(stable=True)
    sizes = torch.bincount(when).tolist()
    parts = zip(node[by_step].split(sizes), rows[by_step].split(sizes), strict=True)
    closes_by_step = [None] * len(sizes) if closes is None else closes[by_step].split(sizes)
    return [(a, b, c) for (a, b), c in zip(parts, closes_by_step, strict=True)]
