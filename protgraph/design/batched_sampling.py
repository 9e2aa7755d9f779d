"""Sample many sequences for a few proteins, in chunks that fit the memory limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from protgraph.design.autoregressive import SampledSequences, random_deviates, sample_sequences
from protgraph.design.constraint import Constraints
from protgraph.design.decode import Decoding, teacher_forced_log_probs
from protgraph.design.decoding_order import decoding_ranks, random_decoding_order
from protgraph.design.encode import encode, merge_constraints, noisy_copies
from protgraph.design.ligand_contacts import near_ligands
from protgraph.design.result import Design
from protgraph.errors import Interrupted
from protgraph.model.build import ProteinModel
from protgraph.structure import Residues

__all__ = ["SamplingRequest", "sample_designs"]


@dataclass(frozen=True)
class SamplingRequest:
    """Options of a sampling run; see :func:`protgraph.design.design_sequences`."""

    copies: int
    temperatures: Sequence[float]
    seed: int
    noise: float
    details: bool
    batch_residues: int
    batch_decoded: int
    sidechains: bool = False
    on_sequences: Callable[[int], None] | None = None

    def chunks(self, residues: int) -> Iterator[range]:
        """Yield the numbers of the copies to sample together; with noise, each copy is encoded separately."""
        most = max((self.batch_residues if self.noise else self.batch_decoded) // residues, 1)
        for first in range(0, self.copies, most):
            yield range(first, min(first + most, self.copies))


def sample_designs(
    model: ProteinModel, proteins: Sequence[Residues], constraints: Sequence[Constraints], request: SamplingRequest
) -> list[Design]:
    """Sample all requested sequences of proteins that are encoded together.

    Raises
    ------
    Interrupted
        On Ctrl-C, with the designs of the chunks that were finished.
    """
    n, device = sum(map(len, proteins)), next(model.parameters()).device
    results: list[list[dict[str, Tensor]]] = [[] for _ in request.temperatures]
    decoding, merged = None, merge_constraints(constraints, device)
    native: Tensor | None = None
    fixed = [~c.designed.numpy() for c in constraints] if request.sidechains else []
    near = torch.from_numpy(np.concatenate([near_ligands(r) for r in proteins])).to(device)
    interruption: KeyboardInterrupt | None = None
    try:
        for chunk in request.chunks(n):
            if request.noise:
                noised = [r for copy in chunk for r in noisy_copies(proteins, request.noise, request.seed, copy)]
                decoding = encode(model, noised, known=fixed * len(chunk))
                merged = merge_constraints([*constraints] * len(chunk), device)
            elif decoding is None:
                decoding = encode(model, proteins, known=fixed)
            sizes = decoding.proteins.sizes[: len(proteins)]
            normal, uniform = (
                x.view(-1, len(decoding.aatype)).to(device) for x in random_deviates(sizes, chunk, seed=request.seed)
            )
            order = random_decoding_order(merged.designed & decoding.decodable, decoding.proteins, normal)
            for number, temperature in enumerate(request.temperatures):
                options = {"copies": len(order), "temperature": temperature, "order": order, "uniform": uniform}
                sampled = sample_sequences(decoding, merged, **options)
                if native is None:
                    native = _native_scores(decoding, merged, sampled)[:, : len(proteins)]
                near_rows = near.repeat(len(decoding.decodable) // n)
                results[number].append(_result(decoding, merged, sampled, len(chunk), request.details, near_rows))
            if request.on_sequences is not None:
                request.on_sequences(len(chunk) * len(request.temperatures) * len(proteins))
    except KeyboardInterrupt as e:
        interruption, finished = e, min(map(len, results))
        if not finished:
            raise
        results = [chunks[:finished] for chunks in results]
    parts = [part for chunks in results for part in chunks]
    arrays = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    temperatures = torch.tensor(request.temperatures, dtype=torch.float64).repeat_interleave(
        len(arrays["score"]) // len(request.temperatures)
    )
    designs = _designs(proteins, merged.designed[:n] & decoding.decodable[:n], arrays, temperatures, native)
    if interruption is not None:
        raise Interrupted(interruption, designs) from interruption
    return designs


@torch.no_grad()
def _native_scores(decoding: Decoding, constraints: Constraints, sampled: SampledSequences) -> Tensor:
    """Return ``(2, B)``: score and global score of the native sequences, in the first decoding order."""
    rank = decoding_ranks(sampled.order[0], decoding.proteins)
    log_probs = teacher_forced_log_probs(decoding, rank)[None]
    native = SampledSequences(decoding.aatype[None], log_probs, log_probs, sampled.order[:1])
    return torch.cat(_scores(decoding, constraints, native)).double().cpu()


def _scores(decoding: Decoding, constraints: Constraints, sampled: SampledSequences) -> list[Tensor]:
    """Return the scores ``(S, B)`` over designed residues, and over all residues with a backbone."""
    masks = constraints.designed & decoding.decodable, decoding.decodable
    return [sampled.score(mask, decoding.proteins) for mask in masks]


def _result(
    decoding: Decoding,
    constraints: Constraints,
    sampled: SampledSequences,
    copies: int,
    details: bool,
    near: Tensor,
) -> dict[str, Tensor]:
    """Return the arrays of one pass that are kept, on the CPU, one row per copy."""
    score, global_score = _scores(decoding, constraints, sampled)
    arrays = {"aatype": sampled.aatype, "score": score.double(), "global_score": global_score.double()}
    mask = constraints.designed & decoding.decodable & near
    arrays["ligand_score"] = sampled.score(mask, decoding.proteins).double()
    if details:
        without_backbone = ~decoding.decodable[:, None]
        arrays["log_probs"] = sampled.log_probs.masked_fill(without_backbone, torch.nan)
        arrays["probabilities"] = sampled.probabilities
    types = sampled.log_probs.size(-1)
    return {
        name: x.reshape(copies, -1, types).cpu() if x.dim() == 3 else x.reshape(copies, -1).cpu()
        for name, x in arrays.items()
    }


def _designs(
    proteins: Sequence[Residues],
    designed: Tensor,
    arrays: dict[str, Tensor],
    temperatures: Tensor,
    native: Tensor | None,
) -> list[Design]:
    assert native is not None  # there is at least one pass
    designs, start = [], 0
    for b, residues in enumerate(proteins):
        rows = slice(start, start + len(residues))
        start = rows.stop
        per_residue = {name: x[:, rows].numpy() for name, x in arrays.items() if "score" not in name}
        designs.append(
            Design(
                residues=residues,
                designed=designed[rows].cpu().numpy(),
                temperature=temperatures.numpy(),
                score=arrays["score"][:, b].numpy(),
                global_score=arrays["global_score"][:, b].numpy(),
                ligand_score=arrays["ligand_score"][:, b].numpy(),
                native_score=float(native[0, b]),
                native_global_score=float(native[1, b]),
                **per_residue,
            )
        )
    return designs
