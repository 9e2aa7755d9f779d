"""Mean of several scorers of mutations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from protgraph_plugins.mutations.mutation import Mutation
from protgraph_plugins.mutations.scorer import MutationScorer, score_column, sign_convention
from protgraph_plugins.mutations.substitution_scan import scan_mutations

from protgraph.errors import OptionError
from protgraph.structure import Residues
from protgraph.validation import check_choice

__all__ = ["ENSEMBLE_MODES", "EnsembleScorer"]

ENSEMBLE_MODES = {
    "mean": "mean of the scores, which need the same unit",
    "scaled": "mean of the scores, each divided by its standard deviation over all substitutions of the structure",
}

_SCALED = "scores divided by their standard deviation over all substitutions, no unit; positive = unfavorable"


class EnsembleScorer:
    """Mean of the scores of several scorers.

    Parameters
    ----------
    scorers : sequence of MutationScorer
        Two or more.
    how : {"mean", "scaled"}
        "mean" of scores with the same unit, or "scaled": scores are divided by their standard deviation over all single
        substitutions of the structure, and have no unit. They are not centered: the wild type stays 0, and reverse
        mutations stay antisymmetric where they are. The divisor does not depend on the requested variants.

    Raises
    ------
    OptionError
        Fewer than two scorers, or a mean of scores with different units or columns, e.g. of folding and of binding.
    """

    def __init__(self, scorers: Sequence[MutationScorer], *, how: str = "mean") -> None:
        check_choice("ensemble", how, ENSEMBLE_MODES)
        if len(scorers) < 2:
            raise OptionError(f"an ensemble of {len(scorers)} scorers. Use two or more.")
        self.scorers = tuple(scorers)
        self.how = how
        self.name = "+".join(dict.fromkeys(scorer.name for scorer in scorers))
        self.needs_ligands = any(getattr(scorer, "needs_ligands", False) for scorer in scorers)
        if how == "mean":
            _check_equal("units", {scorer.name: scorer.unit or "none" for scorer in scorers})
            _check_equal("scores", {scorer.name: score_column(scorer) for scorer in scorers})
            self.unit = scorers[0].unit
            self.convention = sign_convention(scorers[0])
            self.column = score_column(scorers[0])
        else:
            self.unit = ""
            self.convention = _SCALED
            self.column = "unfavorable_score"

    def score(self, residues: Residues, variants: Sequence[Sequence[Mutation]]) -> np.ndarray:
        """Return the mean scores ``(V,)``; NaN where a scorer has none.

        Raises
        ------
        MutationError
            A mutation does not fit the structure.
        OptionError
            All substitutions of the structure have the same score.
        """
        return self.score_members(residues, variants).mean(0)

    def score_members(self, residues: Residues, variants: Sequence[Sequence[Mutation]]) -> np.ndarray:
        """Return the score by each scorer, divided as in the mean, ``(scorers, V)``."""
        return np.stack([s.score(residues, variants) / self._divisor(s, residues) for s in self.scorers])

    def check_variant(self, residues: Residues, variant: Sequence[Mutation]) -> None:
        """Raise the error of the first scorer that cannot score a variant."""
        for scorer in self.scorers:
            if check := getattr(scorer, "check_variant", None):
                check(residues, variant)

    def _divisor(self, scorer: MutationScorer, residues: Residues) -> float:
        if self.how == "mean":
            return 1.0
        scores = scan_mutations(scorer, residues).substitutions
        deviation = float(np.nanstd(scores))
        if not deviation > 0:
            raise OptionError(f"{scorer.name} has no standard deviation over the substitutions of {residues.name}.")
        return deviation


def _check_equal(quantity: str, value_of_scorer: Mapping[str, str]) -> None:
    """Raise :class:`OptionError` if scorers differ in what a mean needs to be equal."""
    if len(set(value_of_scorer.values())) > 1:
        listed = ", ".join(f"{name}: {value}" for name, value in value_of_scorer.items())
        raise OptionError(f"ensemble of different {quantity}: {listed}. Use scaled scores: --ensemble scaled.")
