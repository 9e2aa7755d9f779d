"""Zero-shot scores of mutations from models that predict residue types of a backbone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from torch import Tensor

from protgraph.argument_types import check_arguments
from protgraph.design import (
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
from protgraph.design.mutation.site_differences import SiteDifference, site_differences, sum_log_odds
from protgraph.errors import OptionError
from protgraph.model import ProteinModel, nonfinite_error
from protgraph.structure import Residues
from protgraph.structure.mutation import Mutation
from protgraph.validation import check_choice

__all__ = ["LogOddsScorer"]


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

    @check_arguments("mode", "orders", "seed", "name")
    def __init__(
        self, model: ProteinModel, *, mode: str = "conditional", orders: int = 1, seed: int = 0, name: str = ""
    ) -> None:
        check_design_model(model)
        check_choice("mode", mode, SCORING_MODES)
        for what, value, least in (("orders", orders, 1), ("seed", seed, 0)):
            if value < least:
                raise OptionError(f"invalid {what}: {value}. Use an integer from {least}.")
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
        if not any(d.rows for d in differences):
            return np.zeros(len(differences))
        self.model.eval()
        whole, given = model_rows(self.model, residues)
        decoding = encode(self.model, [whole])
        row = torch.from_numpy(np.flatnonzero(given)).to(decoding.aatype.device)  # (N,) of the given residues
        known = decoding.decodable[row].cpu().numpy()
        usable = [d if known[list(d.rows)].all() else SiteDifference((), (), ()) for d in differences]
        ranks = self._ranks(decoding)
        if self.mode == "teacher_forced":
            scores = self._of_sequences(decoding, ranks, row, usable)
        else:
            scores = sum_log_odds(usable, self._of_sites(decoding, ranks, row, usable))
        if not np.isfinite(scores).all():
            raise nonfinite_error(self.model, encoded_graphs(self.model, [whole]), residues.name)
        scores[[not known[list(d.rows)].all() for d in differences]] = np.nan
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
        sets = list(dict.fromkeys(d.rows for d in differences if d.rows))
        sites = [row[list(rows)] for rows in sets]
        if self.mode == "unconditional":
            log_probs = unconditional_log_probs(decoding)[torch.cat(sites)] if sites else torch.zeros(0, 1)
        else:
            log_probs = sum(masked_log_probs(decoding, rank, sites).double() for rank in ranks) / len(ranks)
        parts = log_probs.split([len(rows) for rows in sets])
        return {rows: part.cpu().numpy() for rows, part in zip(sets, parts, strict=True)}

    def _of_sequences(
        self, decoding: Decoding, ranks: Tensor, row: Tensor, differences: Sequence[SiteDifference]
    ) -> np.ndarray:
        """Return ``log p(wild type) − log p(mutant)`` of whole sequences, averaged over the orders, ``(V,)``."""
        scores, wild_type = np.zeros(len(differences)), decoding.aatype
        changed = [number for number, d in enumerate(differences) if d.rows]
        for rank in ranks:
            (native,) = _sequence_log_probs(decoding, rank, [wild_type])
            sequences = (self._mutated(decoding, row, differences[number]) for number in changed)
            for number, value in zip(changed, _sequence_log_probs(decoding, rank, sequences), strict=True):
                scores[number] += native - value
        return scores / len(ranks)

    @staticmethod
    def _mutated(decoding: Decoding, row: Tensor, difference: SiteDifference) -> Tensor:
        aatype = decoding.aatype.clone()
        sites = row[list(difference.rows)]
        if aatype[sites].tolist() != list(difference.wild_type):  # cannot happen: checked in site_differences
            raise AssertionError("rows of the model differ from those of the structure")
        aatype[sites] = torch.tensor(difference.mutant, device=aatype.device)
        return aatype


def _sequence_log_probs(decoding: Decoding, rank: Tensor, sequences: Iterable[Tensor]) -> list[float]:
    """Return the sum of log-probabilities of the types of each sequence, over residues with a backbone."""
    result = []
    for aatype in sequences:
        log_probs = teacher_forced_log_probs(decoding, rank, aatype).double()  # (N, types)
        counted = decoding.decodable & (aatype < log_probs.size(1))
        result.append(float(log_probs[counted].gather(1, aatype[counted, None]).sum()))
    return result
