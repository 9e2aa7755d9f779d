"""Interface of models that score mutations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import numpy as np
from protgraph_plugins.mutations.mutation import Mutation

from protgraph.structure import Residues

if TYPE_CHECKING:
    from protgraph.checkpoint import CallRule

__all__ = [
    "DDG_CONVENTION",
    "DDG_UNIT",
    "LOG_ODDS_CONVENTION",
    "MutationScorer",
    "ScoresWithSpread",
    "call_rules",
    "name_of_call",
    "score_column",
    "score_with_spread",
    "sign_convention",
]

DDG_UNIT = "kcal/mol"
"""Unit of scorers of free energies."""

DDG_CONVENTION = "ΔΔG = ΔG(mutant) − ΔG(wild type), kcal/mol; positive = destabilizing"
LOG_ODDS_CONVENTION = "log p(wild type) − log p(mutant), natural logarithm, no unit; positive = unfavorable"


@runtime_checkable
class MutationScorer(Protocol):
    """A model that scores variants of a structure.

    Attributes
    ----------
    name : str
        Name for tables and messages, e.g. "proteinmpnn.v_48_020".
    unit : str
        "kcal/mol" for ΔΔG = ΔG(mutant) − ΔG(wild type); "" for log-odds.
    convention : str, optional
        Definition and sign, if they are not those of the unit.
    column : str, optional
        Name of the column of scores with such a convention; default "unfavorable_score".
    needs_ligands : bool, optional
        True if structures must be read with ligands.
    check_variant : callable, optional
        ``(residues, variant)``, raises if the scorer cannot score a variant that fits the structure. Such a row of a
        table is a failure, and the others are scored.

    score_members : callable, optional
        ``(residues, variants)``, returns the scores by each of M members ``(M, V)``, of which ``score`` is the mean.
    calls : sequence of CallRule, optional
        Calls of single mutations that the card of the model supports, e.g. destabilizing.

    Notes
    -----
    Every scorer is positive for unfavorable mutations, and exactly 0 for the wild type: an empty variant, or one with
    only synonymous mutations. The score of a variant does not depend on the others of a call.
    """

    name: str
    unit: str

    def score(self, residues: Residues, variants: Sequence[Sequence[Mutation]]) -> np.ndarray:
        """Return the scores ``(V,)`` float64 of variants, each with all of its mutations together.

        NaN where the model has no value, e.g. for a residue with an incomplete backbone.

        Raises
        ------
        MutationError
            A mutation does not fit the structure (:func:`protgraph_plugins.mutations.find_residues`).
        """
        ...


def sign_convention(scorer: MutationScorer) -> str:
    """Return the definition and sign of the scores of a model, for headers."""
    return getattr(scorer, "convention", "") or (DDG_CONVENTION if scorer.unit == DDG_UNIT else LOG_ODDS_CONVENTION)


def score_column(scorer: MutationScorer) -> str:
    """Return the name of the column of scores: "ddg_kcal_mol", "unfavorable_log_odds", or that of the scorer."""
    if getattr(scorer, "convention", ""):
        return getattr(scorer, "column", "unfavorable_score")
    return "ddg_kcal_mol" if scorer.unit == DDG_UNIT else "unfavorable_log_odds"


class ScoresWithSpread(NamedTuple):
    """Scores of variants ``(V,)``, and the standard deviation of the members ``(V,)``, or None for one model."""

    values: np.ndarray
    spread: np.ndarray | None

    @property
    def spread_or_nan(self) -> np.ndarray:
        """The spread ``(V,)``; NaN for one model."""
        return np.full(len(self.values), np.nan) if self.spread is None else self.spread


def score_with_spread(
    scorer: MutationScorer, residues: Residues, variants: Sequence[Sequence[Mutation]]
) -> ScoresWithSpread:
    """Return the scores of variants, and how far the members of the scorer are apart."""
    of_members = getattr(scorer, "score_members", None)
    if of_members is None:
        return ScoresWithSpread(scorer.score(residues, variants), None)
    scores = np.asarray(of_members(residues, variants))  # (M, V)
    return ScoresWithSpread(scores.mean(0), scores.std(0, ddof=1) if len(scores) > 1 else None)


def call_rules(scorer: MutationScorer) -> tuple[CallRule, ...]:
    """Return the calls that the card of a scorer supports."""
    return tuple(getattr(scorer, "calls", ()))


def name_of_call(rules: Sequence[CallRule], value: float) -> str:
    """Return the call of a score of a single mutation; "" without a rule for it, and for NaN."""
    return next((rule.name for rule in rules if rule.applies(value)), "")
