"""Design and score sequences of proteins, several proteins at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from protgraph_plugins.design.constraints import Constraints
from protgraph_plugins.design.decoding import (
    Decoding,
    check_design_model,
    conditional_log_probs,
    decoding_ranks,
    encode,
    encoded_graphs,
    noisy_copies,
    random_decoding_order,
    random_deviates,
    teacher_forced_log_probs,
    unconditional_log_probs,
)
from protgraph_plugins.design.fasta import parse_sequence
from protgraph_plugins.design.results import Design, Scores
from protgraph_plugins.design.sampling import SamplingRequest, check_temperature, sample_designs
from protgraph_plugins.design.spec import DesignSpec
from protgraph_plugins.design.unresolved import model_rows, without_unresolved
from torch import Tensor

from protgraph.argument_types import check_arguments
from protgraph.data import pack
from protgraph.errors import Interrupted, OptionError, ProtgraphError
from protgraph.model import ProteinModel, nonfinite_error
from protgraph.structure import Residues
from protgraph.validation import check_choice

__all__ = ["SCORING_MODES", "RefusedProteins", "design_sequences", "score_sequences"]

#: Conditioning of the log-probabilities of a residue, by mode.
SCORING_MODES = {
    "teacher_forced": "backbone and native types of the residues before it, in random decoding orders",
    "conditional": "backbone and native types of all other residues",
    "unconditional": "backbone only",
}
BATCH_RESIDUES = 1024  # residues encoded together; 1 MB per residue during encoding
MOST_COPIES = 100_000  # sequences of a protein and temperature, which are kept in memory until all are sampled
BATCH_DECODED = 1 << 15  # sequences × residues decoded together; 5 kB each

T = TypeVar("T")
RefusedProteins = list[tuple[Residues, ProtgraphError]]


@check_arguments("model", "proteins", "spec", "copies", "temperature", "seed", "noise")
def design_sequences(
    model: ProteinModel,
    proteins: Iterable[Residues],
    spec: DesignSpec | Mapping[str, DesignSpec] | None = None,
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
    on_sequences: Callable[[int, int], None] | None = None,
) -> Iterator[Design]:
    """Sample sequences for proteins.

    Parameters
    ----------
    model : ProteinModel
        A model that predicts residue types, autoregressive or in one shot, e.g. from
        :func:`protgraph.model.pretrained`.
    proteins : iterable of Residues
    spec : DesignSpec or mapping of str to DesignSpec, optional
        Designed chains, fixed residues, biases and ties, the same for all proteins or by name of the protein; by
        default all residues are designed.
    copies : int
        Sequences per protein and temperature.
    temperature : float or sequence of float
        Divides the logits; 0 takes the most probable type.
    seed : int
        Seed of decoding orders, types and noise. A sequence does not depend on ``copies`` or on the other proteins.
    noise : float
        Gaussian coordinate noise (standard deviation, Å), resampled for each sequence.
    details : bool
        Keep log-probabilities, and the probabilities that types were sampled from.
    sidechains : bool
        Give side chains of fixed residues to models that use side chains.
    refused : list, optional
        Collects proteins that cannot be designed (the spec does not fit, or no backbone is complete) with the error. By
        default the first of them raises.
    batch_residues, batch_decoded : int
        Residues encoded together, and sequences × residues decoded together.
    on_sequences : callable, optional
        Called with the number of sequences that were sampled since the last call, and that of their residues.

    Yields
    ------
    Design
        On Ctrl-C, the sequences that were finished, before :class:`protgraph.errors.Interrupted` is raised.

    Raises
    ------
    OptionError, SelectionError
        Numbers out of range; see ``refused``.
    WiringError
        The model predicts another target.
    """
    temperatures = [temperature] if isinstance(temperature, (int, float)) else list(temperature)
    _check(copies >= 1, f"invalid copies: {copies}. Use an integer from 1.")
    _check(
        copies <= MOST_COPIES,
        f"invalid copies: {copies}. Allowed: at most {MOST_COPIES:,} sequences per protein and temperature. Use "
        "several calls with other seeds.",
    )
    _check(len(temperatures) > 0, "no temperature given.")
    for t in temperatures:
        check_temperature(t)
        _check(temperatures.count(t) == 1, f"duplicate temperature: {t:g}. Use more copies instead.")
    _check_seed_and_noise(seed, noise)
    check_design_model(model)
    request = SamplingRequest(
        copies=copies,
        temperatures=temperatures,
        seed=seed,
        noise=noise,
        details=details,
        batch_residues=batch_residues,
        batch_decoded=batch_decoded,
        sidechains=sidechains,
        on_sequences=on_sequences,
    )

    def with_constraints(residues: Residues) -> _Designed:
        rows, present = model_rows(model, residues)
        constraints = _spec_of(spec, residues.name).constraints(residues, model.target.size)
        return _Designed(residues, rows, present, constraints.insert(torch.from_numpy(present)))

    accepted = _accepted(proteins, with_constraints, refused)
    for batch in pack(accepted, lambda item: len(item.rows), max_size=batch_residues):
        stopped: Interrupted | None = None
        try:
            designs = sample_designs(
                model, [item.rows for item in batch], [item.constraints for item in batch], request
            )
        except Interrupted as e:
            designs, stopped = e.result, e
        for item, design in zip(batch, designs, strict=True):
            design = without_unresolved(design, item.residues, item.present)
            if design.designed.any():
                yield design
            else:
                _refuse(design.residues, _no_backbone(design.residues, "designed"), refused)
        if stopped is not None:
            raise stopped


@check_arguments("model", "proteins", "chains", "mode", "orders", "seed", "noise")
def score_sequences(
    model: ProteinModel,
    proteins: Iterable[Residues],
    *,
    chains: Sequence[str] = (),
    mode: str = "teacher_forced",
    orders: int = 1,
    seed: int = 0,
    noise: float = 0.0,
    sequences: Sequence[tuple[str, str]] | Mapping[str, Sequence[tuple[str, str]]] = (),
    refused: RefusedProteins | None = None,
    batch_residues: int = BATCH_RESIDUES,
) -> Iterator[Scores]:
    """Compute the log-probabilities of all types at every residue.

    Parameters
    ----------
    model : ProteinModel
        A model that predicts residue types; without a decoder, all modes give the same values.
    proteins : iterable of Residues
    chains : sequence of str
        Chains to score; the others are decoded first, with their native types. All chains by default.
    mode : {"teacher_forced", "conditional", "unconditional"}
        Conditioning, see :data:`SCORING_MODES`.
    orders : int
        Random decoding orders; log-probabilities are averaged. Not used by "unconditional".
    seed : int
        Seed of decoding orders and noise.
    noise : float
        Gaussian coordinate noise (standard deviation, Å).
    sequences : sequence of (str, str), or mapping of protein name to such a sequence
        Names and one-letter sequences of the chains to score, in place of the native ones; "/" may separate chains.
    refused : list, optional
        Collects proteins that cannot be scored, that a sequence does not fit, or for which the model gives NaN, with
        the error. By default the first of them raises.
    batch_residues : int
        Residues encoded together.

    Yields
    ------
    Scores

    Raises
    ------
    OptionError, SelectionError
        Unknown mode or numbers out of range; see ``refused``.
    WiringError
        The model predicts another target.
    """
    check_choice("mode", mode, SCORING_MODES)
    _check(orders >= 1, f"invalid orders: {orders}. Use an integer from 1.")
    _check_seed_and_noise(seed, noise)
    check_design_model(model)

    accepted = _accepted(proteins, lambda r: _Scored.of(model, r, chains, sequences), refused)
    for batch in pack(accepted, lambda item: len(item.rows), max_size=batch_residues):
        failed: set[int] = set()  # a protein that failed has no further sequence
        for index, scores, known in _scores_of_batch(model, batch, mode=mode, orders=orders, seed=seed, noise=noise):
            if index in failed:
                continue
            error = _score_error(model, batch[index], scores.log_probs[known])
            if error is None:
                yield scores
            else:
                failed.add(index)
                _refuse(batch[index].protein, error, refused)


def _spec_of(spec: DesignSpec | Mapping[str, DesignSpec] | None, name: str) -> DesignSpec:
    """Return the options of a protein; the default ones without any."""
    if isinstance(spec, DesignSpec):
        return spec
    return DesignSpec() if spec is None else spec.get(name, DesignSpec())


def _scores_of_batch(
    model: ProteinModel, batch: Sequence[_Scored], *, mode: str, orders: int, seed: int, noise: float
) -> Iterator[tuple[int, Scores, np.ndarray]]:
    """Yield index and scores of each protein, sequence after sequence, and a mask ``(R,)`` of rows with a backbone."""
    decoding = encode(model, noisy_copies([item.rows for item in batch], noise, seed))
    device = decoding.aatype.device
    in_chains = torch.from_numpy(np.concatenate([item.in_chains for item in batch])).to(device)
    mask = in_chains & torch.from_numpy(np.concatenate([item.present for item in batch])).to(device)
    counts = decoding.proteins.sum(mask.long()).tolist()
    known = [x.cpu().numpy() for x in decoding.decodable[mask].split(counts)]

    # Residues that are not scored are decoded first.
    deviates, _ = random_deviates(decoding.proteins.sizes, range(orders), seed=seed)
    last = in_chains if mode == "conditional" else mask & decoding.decodable
    rank = decoding_ranks(random_decoding_order(last, decoding.proteins, deviates.to(device)), decoding.proteins)

    # Each pass scores one sequence of every protein; those with fewer sequences repeat their last one.
    for number in range(max(len(item.sequences) for item in batch)):
        types = [item.sequences[min(number, len(item.sequences) - 1)][1] for item in batch]
        aatype = decoding.aatype.clone()
        aatype[mask] = torch.from_numpy(np.concatenate(types)).to(device)
        log_probs = _log_probs(decoding, mode, rank, aatype, mask).double()
        log_probs = log_probs.masked_fill(~decoding.decodable[mask, None], torch.nan)
        values = [x.cpu().numpy() for x in log_probs.split(counts)]
        for index, item in enumerate(batch):
            if number < len(item.sequences):
                yield index, Scores(item.residues, types[index], values[index], item.sequences[number][0]), known[index]


def _score_error(model: ProteinModel, item: _Scored, log_probs: np.ndarray) -> ProtgraphError | None:
    """Return the error of a protein without residues with a backbone, or with NaN in their ``log_probs (R, types)``."""
    if not len(log_probs):
        return _no_backbone(item.residues, "scored")
    if np.isnan(log_probs).any():
        return nonfinite_error(model, encoded_graphs(model, [item.rows]), item.rows.name)
    return None


@dataclass(frozen=True, eq=False)
class _Designed:
    """A protein, the rows that the model reads, a mask of the protein's residues among them, and their constraints."""

    residues: Residues
    rows: Residues
    present: np.ndarray
    constraints: Constraints


@dataclass(frozen=True, eq=False)
class _Scored:
    """A protein, the rows that the model reads, a mask of the protein's residues among them, and what is scored.

    ``residues`` are those of the scored chains, ``sequences`` the names and types ``(R,)`` of the sequences to score.
    """

    protein: Residues
    rows: Residues
    present: np.ndarray
    residues: Residues
    sequences: list[tuple[str, np.ndarray]]

    @property
    def in_chains(self) -> np.ndarray:
        """Mask of the rows in scored chains."""
        return np.isin(self.rows.chain, self.residues.chain_names)

    @classmethod
    def of(
        cls,
        model: ProteinModel,
        protein: Residues,
        chains: Sequence[str],
        sequences: Sequence[tuple[str, str]] | Mapping[str, Sequence[tuple[str, str]]],
    ) -> _Scored:
        residues = protein.chains(chains) if chains else protein
        of_protein = sequences.get(protein.name, ()) if isinstance(sequences, Mapping) else sequences
        _check(bool(of_protein) or not sequences, f"no sequence for protein {protein.name}.")
        types = [(name, parse_sequence(residues, name, letters)) for name, letters in of_protein]
        rows, present = model_rows(model, protein)
        return cls(protein, rows, present, residues, types or [("", residues.aatype)])


@torch.no_grad()
def _log_probs(decoding: Decoding, mode: str, rank: Tensor, aatype: Tensor, mask: Tensor) -> Tensor:
    """Return the log-probabilities ``(R, types)`` of the residues in a mask ``(N,)``."""
    if mode == "unconditional":
        return unconditional_log_probs(decoding)[mask]
    if mode == "teacher_forced":
        return sum(teacher_forced_log_probs(decoding, r, aatype)[mask] for r in rank) / len(rank)
    rows = mask.nonzero().flatten()
    return sum(conditional_log_probs(decoding, r, aatype, rows=rows) for r in rank) / len(rank)


def _accepted(
    items: Iterable[Residues], function: Callable[[Residues], T], refused: RefusedProteins | None
) -> Iterator[T]:
    """Yield the results of a function for each protein, except for those for which it raises."""
    for residues in items:
        try:
            result = function(residues)
        except ProtgraphError as e:
            _refuse(residues, e, refused)
            continue
        yield result


def _refuse(residues: Residues, error: ProtgraphError, refused: RefusedProteins | None) -> None:
    if refused is None:
        raise error
    refused.append((residues, error))


def _no_backbone(residues: Residues, action: str) -> OptionError:
    complete = int(residues.backbone_mask.all(1).sum())
    return OptionError(
        f"no residue can be {action}: {residues.name}. {complete} of {len(residues)} residues have all of N, CA, C and "
        "O. For CA traces use a CA-only model, e.g. proteinmpnn.ca_v_48_020."
    )


def _check(condition: bool, message: str) -> None:
    if not condition:
        raise OptionError(message)


def _check_seed_and_noise(seed: int, noise: float) -> None:
    _check(seed >= 0, f"invalid seed: {seed}. Use an integer from 0.")
    _check(0 <= noise < math.inf, f"invalid noise: {noise:g}. Use a standard deviation in Å from 0.")
