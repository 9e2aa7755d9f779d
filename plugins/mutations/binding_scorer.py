"""Scores of mutations for binding: the complex minus its separated partners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from protgraph_plugins.mutations.mutation import Mutation
from protgraph_plugins.mutations.residue_index import ResidueIndex
from protgraph_plugins.mutations.scorer import DDG_UNIT, MutationScorer, call_rules, sign_convention

from protgraph.errors import SelectionError
from protgraph.structure import Residues

__all__ = ["BindingScorer", "is_binding_model"]

_DDG = "ΔΔG of binding = ΔΔG of folding in the complex − in the partner alone, kcal/mol; positive = weaker binding"
_LOG_ODDS = "log-odds of wild type and mutant in the complex − in the partner alone; positive = weaker binding"


def is_binding_model(scorer: MutationScorer) -> bool:
    """Return True for a scorer that predicts binding itself, with a method ``score_binding``."""
    return hasattr(scorer, "score_binding")


class BindingScorer:
    """Score of variants in a complex minus the score in the separated partners.

    Parameters
    ----------
    scorer : MutationScorer
        Model of folding, or of residue types given the backbone. If it has a method ``score_complex``, which takes all
        chains as surroundings, that one is used. A model of binding has a method ``score_binding(residues, variants)``,
        which reads the partners of the residues: its scores are returned as they are.
    partners : sequence of sequence of str
        Chains of each side of the interface, e.g. ``(("H", "L"), ("A",))``.

    Raises
    ------
    SelectionError
        Fewer than two partners, or a chain in two of them.

    Notes
    -----
    With the thermodynamic cycle of folding and binding, ``ΔΔG_bind = ΔΔG_fold(complex) − Σ_p ΔΔG_fold(partner p)``,
    if partners keep their backbones when they separate. Scores of residues far from the other partner are near 0. The
    convention of signs is that of folding: positive for weaker binding, exactly 0 for the wild type.
    """

    def __init__(self, scorer: MutationScorer, partners: Sequence[Sequence[str]]) -> None:
        self.partners = tuple(tuple(names) for names in partners)
        chains = [name for names in self.partners for name in names]
        if len(self.partners) < 2 or not all(self.partners) or len(set(chains)) < len(chains):
            raise SelectionError(
                f"invalid partners: {'/'.join(','.join(names) for names in self.partners)}. Give two or more groups of "
                "different chains, e.g. H,L/A."
            )
        self.scorer = scorer
        self.unit = scorer.unit
        self.convention = _DDG if scorer.unit == DDG_UNIT else _LOG_ODDS
        self.name = f"{scorer.name}, complex − partners"
        if is_binding_model(scorer):
            self.name, self.convention = scorer.name, sign_convention(scorer)
        self.column = "ddg_binding_kcal_mol" if scorer.unit == DDG_UNIT else "unfavorable_binding_log_odds"
        self.needs_ligands = getattr(scorer, "needs_ligands", False)
        self.calls = (
            call_rules(scorer) if is_binding_model(scorer) else ()
        )  # a card of folding does not support calls of binding

    def score_members(self, residues: Residues, variants: Sequence[Sequence[Mutation]]) -> np.ndarray:
        """Return the scores by each member of a model of binding ``(M, V)``; of other models, one row."""
        of_members = getattr(self.scorer, "score_members", None)
        if not is_binding_model(self.scorer) or of_members is None:
            return self.score(residues, variants)[None]
        return np.array(of_members(self._complex(residues, variants), variants), np.float64)

    def score(self, residues: Residues, variants: Sequence[Sequence[Mutation]]) -> np.ndarray:
        """Return the scores ``(V,)`` float64; NaN where the scorer has none.

        Raises
        ------
        MutationError
            A mutation does not fit the structure.
        SelectionError
            The structure lacks a chain of a partner, or a mutation is in a chain of none.
        """
        complex_ = self._complex(residues, variants)
        if is_binding_model(self.scorer):
            return np.array(self.scorer.score_binding(complex_, variants), np.float64)
        score = getattr(self.scorer, "score_complex", self.scorer.score)
        scores = np.array(score(complex_, variants), np.float64)
        for names in self.partners:
            variant_of_partner: dict[int, tuple[Mutation, ...]] = {}
            for number, variant in enumerate(variants):
                in_partner = tuple(m for m in variant if m.chain in names)
                if in_partner:
                    variant_of_partner[number] = in_partner
            if variant_of_partner:
                numbers = list(variant_of_partner)
                scores[numbers] -= score(residues.chains(list(names)), list(variant_of_partner.values()))
        return scores

    def _complex(self, residues: Residues, variants: Sequence[Sequence[Mutation]]) -> Residues:
        """Return the chains of all partners, for variants that fit."""
        index = ResidueIndex(residues)
        for variant in variants:
            index.rows(variant)
            self.check_variant(residues, variant)
        chains = residues.chains([name for names in self.partners for name in names])
        return replace(chains, partners=self.partners)

    def check_variant(self, residues: Residues, variant: Sequence[Mutation]) -> None:
        """Raise :class:`SelectionError` if a mutation is in a chain of no partner."""
        for m in variant:
            if not any(m.chain in names for names in self.partners):
                raise SelectionError(
                    f"chain of no partner: {m} ({residues.name}). Partners: {'/'.join(map(','.join, self.partners))}."
                )
