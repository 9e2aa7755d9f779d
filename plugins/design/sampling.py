"""Sample sequences autoregressively: each step decodes one residue of every sequence of every protein.

:func:`sample_designs` samples many sequences for a few proteins, in chunks that fit the memory limits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from protgraph_plugins.design.constraints import Constraints
from protgraph_plugins.design.decoding import (
    Decoding,
    decoding_ranks,
    encode,
    noisy_copies,
    random_decoding_order,
    random_deviates,
    teacher_forced_log_probs,
    tie_order,
)
from protgraph_plugins.design.results import Design
from scipy.spatial import cKDTree
from torch import Tensor

from protgraph.errors import Interrupted, OptionError
from protgraph.model import ProteinModel
from protgraph.ops import Proteins
from protgraph.structure import Residues
from protgraph.structure.descriptors import virtual_cb

__all__ = ["SampledSequences", "SamplingRequest", "check_temperature", "sample_designs", "sample_sequences"]

#: Å, from the virtual CB to a ligand atom (Dauparas et al. 2025, ``cutoff_for_score`` of the program).
_LIGAND_DISTANCE = 8.0
_FIRST = 16  # the first sequences are a sixteenth of those that are later sampled together


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
        return _mean_loss(self.aatype, self.log_probs, mask, proteins)


def _mean_loss(aatype: Tensor, log_probs: Tensor, mask: Tensor, proteins: Proteins) -> Tensor:
    """Return the mean of ``-log p`` of types ``(S, N)`` over the residues of each protein in a mask, ``(S, B)``."""
    is_counted = mask & (aatype < log_probs.size(2))  # (S, N)
    types = aatype.where(is_counted, 0)
    loss = -log_probs.gather(2, types[..., None])[..., 0] * is_counted
    total = proteins.sum(loss.t()).t()
    count = proteins.sum(is_counted.to(loss.dtype).t()).t()
    return total / count


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
    # members of a group without a backbone are not decoded
    groups = []
    is_decodable = decoding.decodable.tolist() if constraints.groups else []
    for members in constraints.groups:
        decoded = [node for node in members if is_decodable[node]]
        if decoded:
            groups.append(decoded)
    if groups:
        order = torch.stack([tie_order(row, groups) for row in order])
    _check_order(order, designed, decoding)
    uniform = default_uniform.to(device) if uniform is None else uniform
    run = _Run(decoding, constraints, designed, order, uniform, temperature)
    for step in _schedule(order, designed, proteins, groups):
        run.step(*step)
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
        self.uniform, self.aatype = uniform.flatten(), decoding.aatype.repeat(self.copies)  # (S N,)
        self.state = decoding.start(self.copies)
        self.h = decoding.fields["h"].new_zeros(self.copies * n, decoding.fields["h"].size(1))
        types = decoding.head(self.h[:1]).size(1)
        self.probabilities = self.h.new_zeros(self.copies * n, types)
        self._decode_fixed(designed, decoding_ranks(order, decoding.proteins))

        # Tied residues: the first node of the group of each node, and the weight of the node's logits in its group.
        self.group = torch.arange(n, device=order.device)
        self.share = torch.ones(n, dtype=self.h.dtype, device=order.device)
        if constraints.tie_weight is not None:
            self.share.copy_(constraints.tie_weight)
        for members in constraints.groups:
            self.group[list(members)] = members[0]
            self.share[list(members)] /= max(int(decoding.decodable[list(members)].sum()), 1)
        self.members = {members[0]: torch.tensor(members, device=order.device) for members in constraints.groups}
        self.sums = self.h.new_zeros(self.copies * n if constraints.groups else 0, types)

    def _decode_fixed(self, designed: Tensor, rank: Tensor) -> None:
        """Decode the fixed residues. They come first in ``rank (S, N)``: their rows depend on each other only."""
        n = len(designed)
        if not bool((~designed & self.decoding.decodable).any()):
            return
        designed_rows = designed.nonzero().flatten()
        for copy in range(self.copies):
            start = copy * n
            h = self.decoding.decoder.teacher_force(self.state, self.decoding.aatype, rank[copy], copy=copy)
            self.h[start : start + n] = h
            self.decoding.decoder.reset(self.state, designed_rows + start)

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
        members = [
            self.members.get(first, node[None]) for first, node in zip(self.group[nodes].tolist(), nodes, strict=True)
        ]
        sizes = torch.tensor([len(group) for group in members], device=rows.device)
        member_rows = torch.cat(members) + (rows - nodes).repeat_interleave(sizes)
        return member_rows, types.repeat_interleave(sizes), p.repeat_interleave(sizes, 0)

    def log_probs(self) -> Tensor:
        """Return the log-probabilities ``(S, N, types)`` of all rows."""
        return self.decoding.head(self.h).log_softmax(-1).view(self.copies, len(self.group), -1)


class _Step(NamedTuple):
    """Rows that are decoded together."""

    nodes: Tensor
    """``(R,)``"""
    rows: Tensor
    """``(R,)``, ``copy · N + node``"""
    closes: Tensor | None
    """``(R,)``, with ties: rows that complete their group."""


def _schedule(order: Tensor, designed: Tensor, proteins: Proteins, groups: Sequence[Sequence[int]]) -> list[_Step]:
    """Return the steps: step k has the k-th designed residue of every copy of every protein."""
    copies, n = order.shape
    is_designed = designed[order]  # (S, N)
    position = is_designed.cumsum(1) - 1  # fixed residues come first in each protein
    counts = proteins.sum(designed.long())
    start = counts.cumsum(0) - counts
    step = position - start[proteins.batch]  # index among the designed residues of the protein
    copy, column = is_designed.nonzero(as_tuple=True)
    nodes, steps = order[copy, column], step[copy, column]
    by_step = steps.argsort(stable=True)
    sizes = torch.bincount(steps).tolist()
    nodes_of_steps = nodes[by_step].split(sizes)
    rows_of_steps = (copy * n + nodes)[by_step].split(sizes)
    closes_of_steps: Sequence[Tensor | None] = [None] * len(sizes)
    if groups:
        group = torch.arange(n, device=order.device)
        for members in groups:
            group[list(members)] = members[0]
        last = torch.ones(copies, n, dtype=torch.bool, device=order.device)
        last[:, :-1] = group[order[:, 1:]] != group[order[:, :-1]]
        closes_of_steps = last[copy, column][by_step].split(sizes)
    return [_Step(*step) for step in zip(nodes_of_steps, rows_of_steps, closes_of_steps, strict=True)]


@dataclass(frozen=True)
class SamplingRequest:
    """Options of a sampling run; see :func:`protgraph_plugins.design.design_sequences`.

    With ``states``, the proteins are states of one protein, which get one sequence.
    """

    copies: int
    temperatures: Sequence[float]
    seed: int
    noise: float
    details: bool
    batch_residues: int
    batch_decoded: int
    sidechains: bool = False
    on_sequences: Callable[[int, int], None] | None = None
    states: bool = False

    def chunks(self, residues: int) -> Iterator[range]:
        """Yield the numbers of the copies to sample together; with noise, each copy is encoded separately.

        The first ones are few, so that the time of all can be estimated early.
        """
        most = max((self.batch_residues if self.noise else self.batch_decoded) // residues, 1)
        end = min(max(most // _FIRST, 1), self.copies)
        yield range(end)
        for start in range(end, self.copies, most):
            yield range(start, min(start + most, self.copies))


def sample_designs(
    model: ProteinModel, proteins: Sequence[Residues], constraints: Sequence[Constraints], request: SamplingRequest
) -> list[Design]:
    """Sample all requested sequences of proteins that are encoded together.

    Raises
    ------
    Interrupted
        On Ctrl-C, with the designs of the chunks that were finished.
    """
    sampling = _ChunkedSampling(model, proteins, constraints, request)
    interruption: KeyboardInterrupt | None = None
    try:
        for copies in request.chunks(sum(map(len, proteins))):
            sampling.sample(copies)
    except KeyboardInterrupt as e:
        if not sampling.finished:
            raise
        interruption = e
    designs = sampling.designs()
    if interruption is not None:
        raise Interrupted(interruption, designs) from interruption
    return designs


class _ChunkedSampling:
    """Encoded proteins, and the arrays of the chunks of copies that were sampled at each temperature."""

    def __init__(
        self,
        model: ProteinModel,
        proteins: Sequence[Residues],
        constraints: Sequence[Constraints],
        request: SamplingRequest,
    ) -> None:
        self.model, self.proteins, self.constraints, self.request = model, proteins, constraints, request
        self.device = next(model.parameters()).device
        self.near = torch.from_numpy(np.concatenate([near_ligands(r) for r in proteins])).to(self.device)
        self.fixed = [~c.designed.numpy() for c in constraints] if request.sidechains else []
        self.merged = Constraints.concatenate(constraints, self.device)
        if request.states:
            self.merged = replace(self.merged, groups=_groups_of_states(constraints))
        self.decoding: Decoding | None = None
        self.native: Tensor | None = None
        self.chunks: list[list[dict[str, Tensor]]] = [[] for _ in request.temperatures]

    @property
    def finished(self) -> int:
        """Number of chunks that were sampled at all temperatures."""
        return min(map(len, self.chunks))

    def sample(self, copies: range) -> None:
        """Sample some copies of all proteins at all temperatures."""
        request = self.request
        decoding = self._encode(copies)

        # Random numbers of each sequence do not depend on what else is decoded.
        total = len(decoding.aatype)
        sizes = decoding.proteins.sizes[: len(self.proteins)]
        normal, uniform = random_deviates(sizes, copies, seed=request.seed)
        normal = normal.view(-1, total).to(self.device)
        uniform = uniform.view(-1, total).to(self.device)
        order = random_decoding_order(self.merged.designed & decoding.decodable, decoding.proteins, normal)

        near = self.near.repeat(total // len(self.near))
        for chunks, temperature in zip(self.chunks, request.temperatures, strict=True):
            sampled = sample_sequences(
                decoding, self.merged, copies=len(order), temperature=temperature, order=order, uniform=uniform
            )
            if self.native is None:
                self.native = _native_scores(decoding, self.merged, sampled.order[0])[:, : len(self.proteins)]
            chunks.append(_arrays(decoding, self.merged, sampled, len(copies), request.details, near))

        if request.on_sequences is not None:
            sequences = len(copies) * len(request.temperatures)
            designed = self.proteins[:1] if request.states else self.proteins  # states get one sequence
            request.on_sequences(sequences * len(designed), sequences * sum(map(len, designed)))

    def _encode(self, copies: range) -> Decoding:
        """Encode the proteins once, or with noise one copy of them for each sequence."""
        if self.request.noise:
            noisy: list[Residues] = []
            for copy in copies:
                noisy += noisy_copies(self.proteins, self.request.noise, self.request.seed, copy)
            self.decoding = encode(self.model, noisy, known=self.fixed * len(copies))
            self.merged = Constraints.concatenate([*self.constraints] * len(copies), self.device)
        elif self.decoding is None:
            self.decoding = encode(self.model, self.proteins, known=self.fixed)
            if self.request.states:  # decoded as one protein; there is no edge between two states
                batch = torch.zeros_like(self.decoding.aatype)
                self.decoding = replace(self.decoding, proteins=Proteins(batch, (len(batch),)))
        return self.decoding

    def designs(self) -> list[Design]:
        """Return the designs of each protein, of the finished chunks."""
        finished: list[dict[str, Tensor]] = []
        for chunks in self.chunks:
            finished += chunks[: self.finished]
        arrays = {}
        for name in finished[0]:
            arrays[name] = torch.cat([chunk[name] for chunk in finished])
        copies = len(arrays["score"]) // len(self.chunks)
        temperatures = torch.tensor(self.request.temperatures, dtype=torch.float64).repeat_interleave(copies)
        native = self.native
        if self.request.states:  # the scores are those of all states
            count = len(self.proteins)
            native = native.expand(-1, count)
            for name in ("score", "global_score", "ligand_score"):
                arrays[name] = arrays[name].expand(-1, count)
        n = len(self.near)
        designed = self.merged.designed[:n] & self.decoding.decodable[:n]
        return _designs(self.proteins, designed, arrays, temperatures, native)


def _groups_of_states(constraints: Sequence[Constraints]) -> list[list[int]]:
    """Return groups of rows of all states that get one type: the same residue, and residues that are tied."""
    size = len(constraints[0].designed)
    groups_of_one_state = [list(group) for group in constraints[0].groups]
    tied = set(itertools.chain.from_iterable(groups_of_one_state))
    groups_of_one_state += [[node] for node in range(size) if node not in tied]

    groups = []
    for group in groups_of_one_state:
        rows = []
        for state in range(len(constraints)):
            rows += [state * size + node for node in group]
        groups.append(rows)
    return groups


@torch.no_grad()
def _native_scores(decoding: Decoding, constraints: Constraints, order: Tensor) -> Tensor:
    """Return ``(2, B)``: score and global score of the native sequences in a decoding order ``(N,)``."""
    log_probs = teacher_forced_log_probs(decoding, decoding_ranks(order, decoding.proteins))
    native, log_probs = decoding.aatype[None], log_probs[None]
    designed = constraints.designed & decoding.decodable
    score = _mean_loss(native, log_probs, designed, decoding.proteins)
    global_score = _mean_loss(native, log_probs, decoding.decodable, decoding.proteins)
    return torch.cat([score, global_score]).double().cpu()


def _arrays(
    decoding: Decoding, constraints: Constraints, sampled: SampledSequences, copies: int, details: bool, near: Tensor
) -> dict[str, Tensor]:
    """Return the arrays of one pass that are kept, on the CPU, one row per copy."""
    designed = constraints.designed & decoding.decodable
    arrays = {
        "aatype": sampled.aatype,
        "score": sampled.score(designed, decoding.proteins).double(),
        "global_score": sampled.score(decoding.decodable, decoding.proteins).double(),
        "ligand_score": sampled.score(designed & near, decoding.proteins).double(),
    }
    arrays = {name: x.reshape(copies, -1).cpu() for name, x in arrays.items()}
    if details:
        types = sampled.log_probs.size(-1)
        log_probs = sampled.log_probs.masked_fill(~decoding.decodable[:, None], torch.nan)
        arrays["log_probs"] = log_probs.reshape(copies, -1, types).cpu()
        arrays["probabilities"] = sampled.probabilities.reshape(copies, -1, types).cpu()
    return arrays


def _designs(
    proteins: Sequence[Residues], designed: Tensor, arrays: dict[str, Tensor], temperatures: Tensor, native: Tensor
) -> list[Design]:
    """Return the designs of each protein; arrays are those of all proteins."""
    designs = []
    start = 0
    for number, residues in enumerate(proteins):
        rows = slice(start, start + len(residues))
        start = rows.stop
        details = {name: arrays[name][:, rows].numpy() for name in ("log_probs", "probabilities") if name in arrays}
        designs.append(
            Design(
                residues=residues,
                designed=designed[rows].cpu().numpy(),
                aatype=arrays["aatype"][:, rows].numpy(),
                temperature=temperatures.numpy(),
                score=arrays["score"][:, number].numpy(),
                global_score=arrays["global_score"][:, number].numpy(),
                ligand_score=arrays["ligand_score"][:, number].numpy(),
                native_score=float(native[0, number]),
                native_global_score=float(native[1, number]),
                log_probs=details.get("log_probs"),
                probabilities=details.get("probabilities"),
            )
        )
    return designs


def near_ligands(residues: Residues) -> np.ndarray:
    """Return a mask ``(N,)`` of residues with a heavy ligand atom less than 8 Å from their virtual CB.

    They define the ligand confidence of Dauparas et al. 2025, doi:10.1038/s41592-025-02626-1. False for residues
    without N, CA or C, and for all residues that were read without ligands.
    """
    near = np.zeros(len(residues), bool)
    rows = np.flatnonzero(residues.backbone_mask[:, :3].all(1))
    if residues.ligands is not None and len(residues.ligands.atom_pos) and len(rows):
        distance, _ = cKDTree(residues.ligands.atom_pos).query(virtual_cb(residues.backbone[rows]))
        near[rows] = distance < _LIGAND_DISTANCE
    return near
