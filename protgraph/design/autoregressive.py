"""Drawing sequences: one residue a step of every sequence and protein at a time, each row worked out once."""

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

_SEEDS = 2**63  # how many there are


@dataclass(frozen=True, eq=False)
class SampledSequences:
    """S sequences for the N residues of a batch.

    Parameters
    ----------
    aatype : Tensor
        ``(S, N)`` int64; residues that were not chosen have their own types.
    log_probs : Tensor
        ``(S, N, types)``: what the model said of each residue from the types before it, constraints left out.
    probabilities : Tensor
        ``(S, N, types)``: what types were drawn from; 0 where none was.
    order : Tensor
        ``(S, N)`` int64, nodes as they were decoded, protein after protein.
    """

    aatype: Tensor
    log_probs: Tensor
    probabilities: Tensor
    order: Tensor

    def score(self, mask: Tensor, proteins: Proteins) -> Tensor:
        """``(S, B)``: mean of ``-log p`` of the types over the residues of each protein in the mask ``(N,)``.

        Types that the model does not tell, X say, do not count.
        """
        counted = mask & (self.aatype < self.log_probs.size(2))  # (S, N)
        told = -self.log_probs.gather(2, self.aatype.where(counted, 0)[..., None])[..., 0] * counted
        return proteins.sum(told.t()).t() / proteins.sum(counted.to(told.dtype).t()).t()


def random_deviates(sizes: Sequence[int], copies: Iterable[int], *, seed: int) -> tuple[Tensor, Tensor]:
    """Normal deviates for orders and uniform ones for types, both ``(S, N)`` float64, on the CPU.

    The s-th copy of a protein has the same ones whatever is decoded beside it; ``copies`` are numbers of copies.
    """
    normal, uniform = [], []
    for copy in copies:
        of_protein = []
        for size in sizes:
            generator = torch.Generator().manual_seed((seed * 1_000_003 + copy) % _SEEDS)
            noise = torch.randn(size, generator=generator, dtype=torch.float64)
            of_protein.append((noise, torch.rand(size, generator=generator, dtype=torch.float64)))
        normal.append(torch.cat([a for a, _ in of_protein]))
        uniform.append(torch.cat([b for _, b in of_protein]))
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
    """Draw sequences, each residue from what the model says after those before it.

    Parameters
    ----------
    decoding : Decoding
    constraints : Constraints
    copies : int
        S, sequences of every protein.
    temperature : float
        What logits are divided by; 0 takes the likeliest type.
    seed : int
        Of orders and types. The s-th sequence of a protein is the same whatever is decoded beside it.
    order : Tensor, optional
        ``(S, N)`` int64, nodes in the order of decoding, protein after protein, fixed ones first; random by default.
    uniform : Tensor, optional
        ``(S, N)`` numbers from 0 to 1, by which types are chosen from their cumulative probabilities.

    Raises
    ------
    OptionError
        Fewer than one copy, a temperature that is none, an order in which a designed residue comes before a fixed one.

    Notes
    -----
    Only the row of the residue at hand is worked out, for all copies and proteins at once; what edges and nodes add to
    messages is kept. Tied residues are worked out one after the other and see where each other stands, not its type, as
    in the reference. One without a backbone says nothing, and gets the type of the others.
    """
    if copies < 1:
        raise OptionError(f"copies={copies}: 1 sequence or more")
    check_temperature(temperature)
    proteins, device = decoding.proteins, decoding.aatype.device
    constraints = constraints.shared()
    designed = constraints.designed & decoding.known
    drawn = random_deviates(proteins.sizes, range(copies), seed=seed)
    if order is None:
        order = random_decoding_order(designed, proteins, drawn[0].to(device))
    there = set(decoding.known.nonzero().flatten().tolist()) if constraints.groups else set()
    groups = [seen for g in constraints.groups if (seen := [node for node in g if node in there])]
    if groups:
        order = torch.stack([tie_order(one, groups) for one in order])
    _check_order(order, designed, decoding)
    uniform = drawn[1].to(device) if uniform is None else uniform
    run = _Run(decoding, constraints, designed, order, uniform, temperature)
    for nodes, rows, closes in _schedule(order, designed, proteins, groups):
        run.step(nodes, rows, closes)
    return SampledSequences(run.aatype.view(copies, -1), run.log_probs(), run.drawn.view(copies, len(designed), -1), order)


def check_temperature(temperature: float) -> None:
    """A temperature is a number from 0 on."""
    if not 0 <= temperature < math.inf:
        raise OptionError(f"temperature={temperature:g}: a number from 0 (the likeliest type) on")


def _check_order(order: Tensor, designed: Tensor, decoding: Decoding) -> None:
    """Designed residues come after fixed ones in every protein; those without a backbone are nobody's neighbors."""
    rank, n = decoding_ranks(order, decoding.proteins), len(designed)  # (S, N)
    protein = decoding.proteins.batch.expand_as(rank)
    last = rank.masked_fill(designed | ~decoding.known, -1)
    first = rank.masked_fill(~designed, n)
    last = last.new_full((len(rank), len(decoding.proteins.sizes)), -1).scatter_reduce(1, protein, last, "amax")
    first = first.new_full(last.shape, n).scatter_reduce(1, protein, first, "amin")
    if bool((last > first).any()):
        raise OptionError("in this order a designed residue comes before a fixed one; fixed ones are first")


class _Run:
    """The sequences so far; rows are numbered ``copy · N + node``."""

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
        self.h = decoding.f["h"].new_zeros(self.copies * n, decoding.f["h"].size(1))
        fixed, rank = ~designed & decoding.known, decoding_ranks(order, decoding.proteins)
        if bool(fixed.any()):
            chosen = designed.nonzero().flatten()
            for copy in range(self.copies):  # fixed residues come first: their rows see each other alone
                start = copy * n
                self.h[start : start + n] = decoding.decoder.teacher_force(self.state, decoding.aatype, rank[copy], copy=copy)
                decoding.decoder.reset(self.state, chosen + start)
        self.group = torch.arange(n, device=device)  # the first node of each one's group
        self.share = torch.ones(n, dtype=self.h.dtype, device=device)  # of each one's logits in its group's
        if constraints.tie_weight is not None:
            self.share.copy_(constraints.tie_weight)
        for members in constraints.groups:
            self.group[list(members)] = members[0]
            self.share[list(members)] /= max(int(decoding.known[list(members)].sum()), 1)
        self.members = {g[0]: torch.tensor(g, device=device) for g in constraints.groups}
        self.sums = torch.zeros(0, device=device)
        types = decoding.head(self.h[:1]).size(1)
        self.drawn = self.h.new_zeros(self.copies * n, types)
        if constraints.groups:
            self.sums = self.h.new_zeros(self.copies * n, types)

    def step(self, nodes: Tensor, rows: Tensor, closes: Tensor | None) -> None:
        """Work out one row of some copies, and choose where a group is complete."""
        decoder = self.decoding.decoder
        h = decoder.step(self.state, rows)
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
        self.drawn[rows] = p
        decoder.commit(self.state, rows, types)

    def _whole_groups(self, rows: Tensor, nodes: Tensor, types: Tensor, p: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """All members of the groups whose last residues these are, with the type that was chosen."""
        whole = [
            self.members.get(first, node[None]) for first, node in zip(self.group[nodes].tolist(), nodes, strict=True)
        ]
        times = torch.tensor([len(w) for w in whole], device=rows.device)
        members = torch.cat(whole) + (rows - nodes).repeat_interleave(times)
        return members, types.repeat_interleave(times), p.repeat_interleave(times, 0)

    def log_probs(self) -> Tensor:
        """``(S, N, types)`` of all rows that were worked out."""
        return self.decoding.head(self.h).log_softmax(-1).view(self.copies, len(self.group), -1)


def _schedule(
    order: Tensor, designed: Tensor, proteins: Proteins, groups: Sequence[Sequence[int]]
) -> list[tuple[Tensor, Tensor, Tensor | None]]:
    """For each step: nodes ``(R,)``, rows ``(R,)`` and, where some are tied, which of them complete their group."""
    copies, n = order.shape
    wanted = designed[order]  # (S, N)
    place = wanted.cumsum(1) - 1  # fixed residues come first in each protein
    start = proteins.sum(designed.long()).cumsum(0) - proteins.sum(designed.long())
    step = place - start[proteins.batch]  # which of its protein's designed residues
    copy, at = wanted.nonzero(as_tuple=True)
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
    told = [None] * len(sizes) if closes is None else closes[by_step].split(sizes)
    return [(a, b, c) for (a, b), c in zip(parts, told, strict=True)]
