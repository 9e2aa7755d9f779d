"""Proteins in, sequences and scores out, several proteins at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from protgraph.design.autoregressive import check_temperature, random_deviates
from protgraph.design.batched_sampling import SamplingRequest, sample_designs
from protgraph.design.constraint import Constraints
from protgraph.design.decode import Decoding, check_design_model, conditional_log_probs, teacher_forced_log_probs, unconditional_log_probs
from protgraph.design.decoding_order import random_decoding_order, decoding_ranks
from protgraph.design.design_fasta import parse_sequence
from protgraph.design.encode import encode, grouped, noisy
from protgraph.design.result import Design, Scores
from protgraph.design.spec import DesignSpec
from protgraph.errors import OptionError, ProtgraphError
from protgraph.model.build import ProteinModel
from protgraph.structure import Residues

__all__ = ["SCORING_MODES", "RefusedProteins", "design_sequences", "score_sequences"]

#: How residues are scored, and what each one is told.
SCORING_MODES = {
    "forced": "the backbone and the types before it, in random orders",
    "conditional": "the backbone and the types of all others",
    "unconditional": "the backbone alone",
}
BATCH_RESIDUES = 1024  # that are encoded at a time; 1 MB a residue while it is encoded
BATCH_DECODED = 1 << 15  # sequences × residues that are decoded at a time; 5 kB each

T = TypeVar("T")
RefusedProteins = list[tuple[Residues, ProtgraphError]]


def design_sequences(
    model: ProteinModel,
    proteins: Iterable[Residues],
    wish: DesignSpec | None = None,
    *,
    copies: int = 1,
    temperature: float | Sequence[float] = 0.1,
    seed: int = 0,
    noise: float = 0.0,
    details: bool = False,
    sidechains: bool = False,
    refused: RefusedProteins | None = None,
    batch_residues: int = BATCH_RESIDUES,
    batch_decoded: int = BATCH_DECODED,
) -> Iterator[Design]:
    """Draw sequences for proteins.

    Parameters
    ----------
    model : ProteinModel
        That tells residue types, all at once or with a decoder; :func:`protgraph.model.pretrained` gives one.
    proteins : iterable of Residues
    wish : DesignSpec, optional
    copies : int
        Sequences of each protein at each temperature.
    temperature : float or sequence of float
        What logits are divided by; 0 takes the likeliest type.
    seed : int
        The same one gives the same sequences, however many there are, and whatever else is decoded beside them.
    noise : float
        Å, standard deviation of what is added to every coordinate, anew for each sequence.
    details : bool
        Keep log-probabilities, and the probabilities that types were drawn from.
    sidechains : bool
        Show the side chains of residues that are not designed, to models that look at side chains.
    refused : list, optional
        Proteins for which the wish makes no sense, or that the model sees nothing of, are appended here with the error,
        and the others go on; without a list, the first of them raises.
    batch_residues, batch_decoded : int
        Residues that are encoded at a time, and sequences × residues that are decoded at a time.

    Raises
    ------
    OptionError, SelectionError
        Numbers out of range; see ``refused``.
    WiringError
        The model predicts something else.
    """
    wish = wish or DesignSpec()
    temperatures = [temperature] if isinstance(temperature, (int, float)) else list(temperature)
    _check(copies >= 1, f"copies={copies}: 1 sequence or more")
    _check(len(temperatures) > 0, "there is no temperature")
    for one in temperatures:
        check_temperature(one)
        _check(temperatures.count(one) == 1, f"temperature {one:g} is given twice; ask for more copies")
    _check_seed_and_noise(seed, noise)
    check_design_model(model)
    request = SamplingRequest(copies, temperatures, seed, noise, details, batch_residues, batch_decoded, sidechains)

    def wished(residues: Residues) -> tuple[Residues, Constraints]:
        return residues, wish.constraints(residues, model.target.size)

    pairs = _allowed(proteins, wished, refused)
    for some in grouped(pairs, batch_residues, lambda pair: len(pair[0])):
        made = sample_designs(model, [residues for residues, _ in some], [c for _, c in some], request)
        for one in made:
            if one.designed.any():
                yield one
            else:
                _refuse(one.residues, _unseen(one.residues, "to be designed"), refused)


def score_sequences(
    model: ProteinModel,
    proteins: Iterable[Residues],
    *,
    chains: Sequence[str] = (),
    mode: str = "forced",
    orders: int = 1,
    seed: int = 0,
    noise: float = 0.0,
    sequences: Sequence[tuple[str, str]] | Mapping[str, Sequence[tuple[str, str]]] = (),
    refused: RefusedProteins | None = None,
    batch_residues: int = BATCH_RESIDUES,
) -> Iterator[Scores]:
    """Log-probabilities of the types of every residue.

    Parameters
    ----------
    model : ProteinModel
        That tells residue types; one without a decoder says the same in every mode.
    proteins : iterable of Residues
    chains : sequence of str
        Chains to score; types and places of the others are told first. All where there are none.
    mode : {"forced", "conditional", "unconditional"}
        What each residue is told; see :data:`SCORING_MODES`.
    orders : int
        Random orders whose log-probabilities are averaged; of no use to "unconditional".
    seed : int
        Of the orders.
    noise : float
        Å, standard deviation of what is added to every coordinate.
    sequences : sequence of (str, str), or a mapping to such from names of proteins
        Names and letters to score in place of those in the structures, of the chains to score; "/" may part chains.
    refused : list, optional
        Proteins that cannot be scored, or that a sequence does not fit, are appended here with the error, and the
        others go on; without a list, the first of them raises.
    batch_residues : int
        Residues that are encoded at a time.

    Raises
    ------
    OptionError, SelectionError
        An unknown mode, numbers out of range; see ``refused``.
    WiringError
        The model predicts something else.
    """
    _check(mode in SCORING_MODES, f"mode={mode!r} is none of {', '.join(SCORING_MODES)}")
    _check(orders >= 1, f"orders={orders}: 1 order or more")
    _check_seed_and_noise(seed, noise)
    check_design_model(model)

    def fitting(residues: Residues) -> tuple[Residues, Residues, list[tuple[str, np.ndarray]]]:
        own = residues.chains(chains) if chains else residues
        given = sequences.get(residues.name, ()) if isinstance(sequences, Mapping) else sequences
        _check(bool(given) or not sequences, f"{residues.name}: none of the sequences is of this protein")
        return residues, own, [(name, parse_sequence(own, name, text)) for name, text in given] or [("", own.aatype)]

    for some in grouped(_allowed(proteins, fitting, refused), batch_residues, lambda item: len(item[0])):
        whole = [residues for residues, _, _ in some]
        decoding = encode(model, noisy(whole, noise, seed))
        asked = torch.cat([torch.from_numpy(np.isin(r.chain, own.chain_names)) for r, own, _ in some])
        asked = asked.to(decoding.aatype.device)
        drawn = random_deviates(decoding.proteins.sizes, range(orders), seed=seed)[0].to(asked.device)
        rank = decoding_ranks(random_decoding_order(asked, decoding.proteins, drawn), decoding.proteins)
        for number in range(max(len(given) for _, _, given in some)):
            aatype = decoding.aatype.clone()
            types = np.concatenate([given[min(number, len(given) - 1)][1] for _, _, given in some])
            aatype[asked] = torch.from_numpy(types).to(asked.device)
            told = _log_probs(decoding, mode, rank, aatype, asked).double()
            parts = _parts(decoding, asked, aatype, told.masked_fill(~decoding.known[asked, None], torch.nan))
            for (residues, own, given), (types, log_probs) in zip(some, parts, strict=True):
                if number >= len(given):
                    continue
                one = Scores(own, types, log_probs, given[number][0])
                if not np.isnan(one.each).all():
                    yield one
                elif number == 0:
                    _refuse(residues, _unseen(own, "to be scored"), refused)


@torch.no_grad()
def _log_probs(decoding: Decoding, mode: str, rank: Tensor, aatype: Tensor, asked: Tensor) -> Tensor:
    """``(R, types)`` of the residues that are asked for."""
    if mode == "unconditional":
        return unconditional_log_probs(decoding)[asked]
    if mode == "forced":
        return sum(teacher_forced_log_probs(decoding, r, aatype)[asked] for r in rank) / len(rank)
    rows = asked.nonzero().flatten()
    return sum(conditional_log_probs(decoding, r, aatype, rows=rows) for r in rank) / len(rank)


def _parts(
    decoding: Decoding, asked: Tensor, aatype: Tensor, log_probs: Tensor
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Types and log-probabilities of the residues of each protein that are asked for."""
    counts = decoding.proteins.sum(asked.long()).tolist()
    for types, told in zip(aatype[asked].split(counts), log_probs.split(counts), strict=True):
        yield types.cpu().numpy(), told.cpu().numpy()


def _allowed(items: Iterable[Residues], of: Callable[[Residues], T], refused: RefusedProteins | None) -> Iterator[T]:
    """What a function makes of each protein, but of those for which it raises."""
    for residues in items:
        try:
            made = of(residues)
        except ProtgraphError as e:
            _refuse(residues, e, refused)
            continue
        yield made


def _refuse(residues: Residues, error: ProtgraphError, refused: RefusedProteins | None) -> None:
    if refused is None:
        raise error
    refused.append((residues, error))


def _unseen(residues: Residues, what: str) -> OptionError:
    whole = int(residues.backbone_mask.all(1).sum())
    return OptionError(
        f"{residues.name}: the model sees none of the residues {what}; {whole} of {len(residues)} have all of N, CA, C "
        "and O, and for CA alone there are models of their own"
    )


def _check(claim: bool, otherwise: str) -> None:
    if not claim:
        raise OptionError(otherwise)


def _check_seed_and_noise(seed: int, noise: float) -> None:
    _check(seed >= 0, f"seed={seed}: a whole number from 0 on")
    _check(0 <= noise < math.inf, f"noise={noise:g}: a number of Å from 0 on")
