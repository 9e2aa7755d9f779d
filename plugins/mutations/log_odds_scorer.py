"""Zero-shot scores of mutations from models that predict residue types of a backbone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from protgraph_plugins.design import (
    SCORING_MODES,
    Decoding,
    check_design_model,
    decoding_ranks,
    encode,
    encoded_graphs,
    masked_log_probs,
    model_rows,
    random_decoding_order,
    random_deviates,
    teacher_forced_log_probs,
    unconditional_log_probs,
)
from protgraph_plugins.mutations.mutation import Mutation
from protgraph_plugins.mutations.residue_index import ResidueIndex
from torch import Tensor

from protgraph.errors import OptionError
from protgraph.model import ProteinModel, nonfinite_error
from protgraph.structure import ALPHABET, Residues
from protgraph.validation import check_choice

__all__ = ["LogOddsScorer", "SiteDifference", "site_differences", "sum_log_odds"]


@dataclass(frozen=True)
class SiteDifference:
    """Rows of a structure whose type differs in a variant, ascending, with both types.

    Parameters
    ----------
    rows, wild_type, mutant : tuple of int
        Row in the residues, and indices in :data:`protgraph.structure.ALPHABET`.
    """

    rows: tuple[int, ...]
    wild_type: tuple[int, ...]
    mutant: tuple[int, ...]


def site_differences(residues: Residues, variants: Sequence[Sequence[Mutation]]) -> list[SiteDifference]:
    """Return the differences of each variant from the structure; synonymous mutations are none.

    Raises
    ------
    MutationError
        A mutation does not fit the structure.
    """
    index = ResidueIndex(residues)
    differences = []
    for variant in variants:
        rows = index.rows(variant).tolist()
        pairs = zip(rows, variant, strict=True)
        changed = sorted((row, m.wild_type, m.mutant) for row, m in pairs if not m.is_synonymous)
        difference = SiteDifference(
            tuple(row for row, _, _ in changed),
            tuple(ALPHABET.index(letter) for _, letter, _ in changed),
            tuple(ALPHABET.index(letter) for _, _, letter in changed),
        )
        differences.append(difference)
    return differences


def sum_log_odds(differences: Sequence[SiteDifference], log_probs: Mapping[tuple[int, ...], np.ndarray]) -> np.ndarray:
    """Return ``Σ_i log p_i(wild type) − log p_i(mutant)`` ``(V,)`` float64; exactly 0 without differences.

    Parameters
    ----------
    differences : sequence of SiteDifference
    log_probs : mapping of tuple of int to ndarray
        ``(M, types)`` for each set of rows, in its order.
    """
    scores = np.zeros(len(differences))
    for number, difference in enumerate(differences):
        if difference.rows:
            table = log_probs[difference.rows].astype(np.float64)
            sites = np.arange(len(difference.rows))
            scores[number] = (table[sites, difference.wild_type] - table[sites, difference.mutant]).sum()
    return scores


class LogOddsScorer:
    """Log-odds of wild type and mutant, ``log p(wild type) − log p(mutant)``; positive = unfavorable.

    Parameters
    ----------
    model : ProteinModel
        A model that predicts residue types, e.g. ``pretrained("proteinmpnn.v_48_020")`` or ``"ligandmpnn"``. It is used
        in evaluation mode, and no noise is added to coordinates.
    mode : {"conditional", "unconditional", "teacher_forced"}
        "conditional": the mutated residues are masked together, given the backbone and the types of all other residues;
        log-odds are summed over them. "unconditional": given the backbone only. "teacher_forced": difference of the
        log-probabilities of the two whole sequences, in the same decoding orders; it has one pass per sequence.
    orders : int
        Random decoding orders to average over; "unconditional" does not depend on them.
    seed : int
        Seed of the orders.
    name : str
        Default: name of the model.

    Raises
    ------
    OptionError
        Unknown mode, or numbers out of range.
    WiringError
        The model predicts another target.

    Notes
    -----
    Exactly 0 for the wild type, and the negative for the reverse mutation on the same backbone: both have the same
    context. Every other structure, e.g. that of the mutant, has its own log-odds.

    References
    ----------
    Dauparas et al. 2022, doi:10.1126/science.add2187. Meier et al. 2021, doi:10.1101/2021.07.09.450648 (log-odds of
    masked residues as scores of variants).
    """

    unit = ""

    def __init__(
        self, model: ProteinModel, *, mode: str = "conditional", orders: int = 1, seed: int = 0, name: str = ""
    ) -> None:
        check_design_model(model)
        check_choice("mode", mode, SCORING_MODES)
        if not isinstance(orders, int) or orders < 1:
            raise OptionError(f"invalid orders: {orders!r}. Use an integer from 1.")
        if not isinstance(seed, int) or seed < 0:
            raise OptionError(f"invalid seed: {seed!r}. Use an integer from 0.")
        self.model, self.mode, self.orders, self.seed = model.eval(), mode, orders, seed
        self.name = name or model.spec.name
        self.needs_ligands: bool = model.plan.needs_ligands

    @torch.no_grad()
    def score(self, residues: Residues, variants: Sequence[Sequence[Mutation]]) -> np.ndarray:
        """Return the log-odds ``(V,)`` float64 of variants; NaN at residues without a complete backbone.

        Raises
        ------
        MutationError
            A mutation does not fit the structure.
        ComponentError
            The model gives NaN or infinity.
        """
        differences = site_differences(residues, variants)
        if not any(difference.rows for difference in differences):
            return np.zeros(len(differences))
        self.model.eval()
        # The model also reads residues of the sequence without coordinates; `row` maps given residues to its rows.
        with_unresolved, is_given = model_rows(self.model, residues)
        decoding = encode(self.model, [with_unresolved])
        row = torch.from_numpy(np.flatnonzero(is_given)).to(decoding.aatype.device)  # (N,)
        decodable = decoding.decodable[row].cpu().numpy()
        is_scored = [bool(decodable[list(difference.rows)].all()) for difference in differences]
        nothing = SiteDifference((), (), ())
        scorable = [d if scored else nothing for d, scored in zip(differences, is_scored, strict=True)]
        ranks = self._ranks(decoding)
        if self.mode == "teacher_forced":
            scores = self._of_sequences(decoding, ranks, row, scorable)
        else:
            scores = sum_log_odds(scorable, self._of_sites(decoding, ranks, row, scorable))
        if not np.isfinite(scores).all():
            raise nonfinite_error(self.model, encoded_graphs(self.model, [with_unresolved]), residues.name)
        scores[~np.array(is_scored)] = np.nan
        return scores

    def _ranks(self, decoding: Decoding) -> Tensor:
        """Return the decoding orders as ranks ``(orders, N)``."""
        deviates = random_deviates(decoding.proteins.sizes, range(self.orders), seed=self.seed)[0]
        order = random_decoding_order(decoding.decodable, decoding.proteins, deviates.to(decoding.aatype.device))
        return decoding_ranks(order, decoding.proteins)

    def _of_sites(
        self, decoding: Decoding, ranks: Tensor, row: Tensor, differences: Sequence[SiteDifference]
    ) -> dict[tuple[int, ...], np.ndarray]:
        """Return the log-probabilities ``(M, types)`` of each set of rows."""
        sets = list(dict.fromkeys(difference.rows for difference in differences if difference.rows))
        sites = [row[list(rows)] for rows in sets]
        if self.mode != "unconditional":
            log_probs = sum(masked_log_probs(decoding, rank, sites).double() for rank in ranks) / len(ranks)
        elif sites:
            log_probs = unconditional_log_probs(decoding)[torch.cat(sites)]
        else:
            log_probs = torch.zeros(0, 1)
        by_set = log_probs.split([len(rows) for rows in sets])
        return {rows: values.cpu().numpy() for rows, values in zip(sets, by_set, strict=True)}

    def _of_sequences(
        self, decoding: Decoding, ranks: Tensor, row: Tensor, differences: Sequence[SiteDifference]
    ) -> np.ndarray:
        """Return ``log p(wild type) − log p(mutant)`` of whole sequences, averaged over the orders, ``(V,)``."""
        scores = np.zeros(len(differences))
        changed = [number for number, difference in enumerate(differences) if difference.rows]
        for rank in ranks:
            (native,) = _sequence_log_probs(decoding, rank, [decoding.aatype])
            sequences = (_mutated(decoding, row, differences[number]) for number in changed)
            for number, value in zip(changed, _sequence_log_probs(decoding, rank, sequences), strict=True):
                scores[number] += native - value
        return scores / len(ranks)


def _mutated(decoding: Decoding, row: Tensor, difference: SiteDifference) -> Tensor:
    """Return the types ``(N,)`` of a variant."""
    aatype = decoding.aatype.clone()
    aatype[row[list(difference.rows)]] = torch.tensor(difference.mutant, device=aatype.device)
    return aatype


def _sequence_log_probs(decoding: Decoding, rank: Tensor, sequences: Iterable[Tensor]) -> list[float]:
    """Return the sum of log-probabilities of the types of each sequence, over residues with a backbone."""
    totals = []
    for aatype in sequences:
        log_probs = teacher_forced_log_probs(decoding, rank, aatype).double()  # (N, types)
        counted = decoding.decodable & (aatype < log_probs.size(1))
        totals.append(float(log_probs[counted].gather(1, aatype[counted, None]).sum()))
    return totals
