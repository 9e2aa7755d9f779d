"""Many sequences for a few proteins, as many at a time as memory is meant for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from protgraph.design.autoregressive import SampledSequences, random_deviates, sample_sequences
from protgraph.design.constraint import Constraints
from protgraph.design.decode import Decoding, teacher_forced_log_probs
from protgraph.design.decoding_order import random_decoding_order, decoding_ranks
from protgraph.design.encode import encode, merge_constraints, noisy
from protgraph.design.ligand_contacts import near_ligands
from protgraph.design.result import Design
from protgraph.model.build import ProteinModel
from protgraph.structure import Residues

__all__ = ["SamplingRequest", "sample_designs"]


@dataclass(frozen=True)
class SamplingRequest:
    """How many sequences, and how; see :func:`protgraph.design.design_sequences`."""

    copies: int
    temperatures: Sequence[float]
    seed: int
    noise: float
    details: bool
    batch_residues: int
    batch_decoded: int
    sidechains: bool = False

    def chunks(self, residues: int) -> Iterator[range]:
        """Numbers of the copies that are drawn at a time. Each is encoded by itself where there is noise."""
        most = max((self.batch_residues if self.noise else self.batch_decoded) // residues, 1)
        for first in range(0, self.copies, most):
            yield range(first, min(first + most, self.copies))


def sample_designs(model: ProteinModel, some: Sequence[Residues], wishes: Sequence[Constraints], request: SamplingRequest) -> list[Design]:
    """All sequences that are asked for, of proteins that are encoded together."""
    n, device = sum(map(len, some)), next(model.parameters()).device
    drawn: list[list[dict[str, Tensor]]] = [[] for _ in request.temperatures]
    decoding, constraints = None, merge_constraints(wishes, device)
    native: Tensor | None = None
    stays = [~c.designed.numpy() for c in wishes] if request.sidechains else []
    near = torch.from_numpy(np.concatenate([near_ligands(r) for r in some])).to(device)
    for chunk in request.chunks(n):
        if request.noise:
            seen = [r for copy in chunk for r in noisy(some, request.noise, request.seed, copy)]
            decoding = encode(model, seen, known=stays * len(chunk))
            constraints = merge_constraints([*wishes] * len(chunk), device)
        elif decoding is None:
            decoding = encode(model, some, known=stays)
        known, sizes = decoding.known[:n], decoding.proteins.sizes[: len(some)]
        normal, uniform = (
            x.view(-1, len(decoding.aatype)).to(device) for x in random_deviates(sizes, chunk, seed=request.seed)
        )
        order = random_decoding_order(constraints.designed & decoding.known, decoding.proteins, normal)
        for number, temperature in enumerate(request.temperatures):
            how = {"copies": len(order), "temperature": temperature, "order": order, "uniform": uniform}
            made = sample_sequences(decoding, constraints, **how)
            if native is None:
                native = _native(decoding, constraints, made)[:, : len(some)]
            about = near.repeat(len(decoding.known) // n)
            drawn[number].append(_told(decoding, constraints, made, len(chunk), request.details, about))
    parts = [part for at_one in drawn for part in at_one]
    whole = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    temperatures = torch.tensor(request.temperatures, dtype=torch.float64).repeat_interleave(request.copies)
    return _designs(some, constraints.designed[:n] & known, whole, temperatures, native)


@torch.no_grad()
def _native(decoding: Decoding, constraints: Constraints, made: SampledSequences) -> Tensor:
    """``(2, B)`` score and global score of the structures' own sequences, in the first order."""
    told = teacher_forced_log_probs(decoding, decoding_ranks(made.order[0], decoding.proteins))[None]
    own = SampledSequences(decoding.aatype[None], told, told, made.order[:1])
    return torch.cat(_scores(decoding, constraints, own)).double().cpu()


def _scores(decoding: Decoding, constraints: Constraints, made: SampledSequences) -> list[Tensor]:
    """``(S, B)`` over the residues that are designed, and over all that have a backbone."""
    masks = constraints.designed & decoding.known, decoding.known
    return [made.score(mask, decoding.proteins) for mask in masks]


def _told(
    decoding: Decoding, constraints: Constraints, made: SampledSequences, copies: int, details: bool, about: Tensor
) -> dict[str, Tensor]:
    """What is kept of one pass, on the CPU, a row a copy."""
    score, global_score = _scores(decoding, constraints, made)
    kept = {"aatype": made.aatype, "score": score.double(), "global_score": global_score.double()}
    kept["ligand_score"] = made.score(constraints.designed & decoding.known & about, decoding.proteins).double()
    if details:
        unseen = ~decoding.known[:, None]
        kept |= {"log_probs": made.log_probs.masked_fill(unseen, torch.nan), "probabilities": made.probabilities}
    types = made.log_probs.size(-1)
    return {
        name: x.reshape(copies, -1, types).cpu() if x.dim() == 3 else x.reshape(copies, -1).cpu()
        for name, x in kept.items()
    }


def _designs(
    some: Sequence[Residues], designed: Tensor, whole: dict[str, Tensor], temperatures: Tensor, native: Tensor | None
) -> list[Design]:
    assert native is not None  # there is a first pass
    found, start = [], 0
    for b, residues in enumerate(some):
        rows = slice(start, start + len(residues))
        start = rows.stop
        of_residues = {name: x[:, rows].numpy() for name, x in whole.items() if "score" not in name}
        found.append(
            Design(
                residues=residues,
                designed=designed[rows].cpu().numpy(),
                temperature=temperatures.numpy(),
                score=whole["score"][:, b].numpy(),
                global_score=whole["global_score"][:, b].numpy(),
                ligand_score=whole["ligand_score"][:, b].numpy(),
                native_score=float(native[0, b]),
                native_global_score=float(native[1, b]),
                **of_residues,
            )
        )
    return found
