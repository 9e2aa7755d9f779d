"""Scorer ``ddg_binding``: change of the binding free energy on mutation by a trained model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
from protgraph_plugins import trained
from protgraph_plugins.ddg.trained_scorer import TrainedMutationScorer

from protgraph import Residues
from protgraph.checkpoint import TrainedModel
from protgraph.errors import SelectionError
from protgraph.structure.mutation import Mutation, ResidueIndex

__all__ = ["BINDING_MODEL", "TrainedBindingScorer"]
ENTRY_POINTS = {"protgraph.mutation_scorers": {"ddg_binding": "TrainedBindingScorer"}}

BINDING_MODEL = TrainedModel(Path(trained.__file__).parent / "ddg_binding", check_code=False)


class TrainedBindingScorer(TrainedMutationScorer):
    """ΔΔG of binding of variants of a complex, kcal/mol, by the mean of the members of a trained model.

    Parameters
    ----------
    weights : str, optional
        Checkpoint of a model with the head ``mutation``. Default: the trained model ``ddg_binding``.
    device : str
        "auto", "cpu", "cuda" or "cuda:1".

    Raises
    ------
    CheckpointError
        The checkpoint cannot be read, or does not predict mutations.

    Notes
    -----
    Partners are those of the residues (``--partners H,L/A``); a structure with two chains needs none. All mutations of
    a variant are in one graph, without the types that change. NaN at residues without all of N, CA, C and O.
    """

    trained: ClassVar[TrainedModel] = BINDING_MODEL
    recipe = BINDING_MODEL.recipe
    convention = "ΔΔG of binding = R T ln(Kd of mutant / Kd of wild type), kcal/mol; positive = weaker binding"
    column = "ddg_binding_kcal_mol"

    def score(self, residues: Residues, variants: Sequence[Sequence[Mutation]]) -> np.ndarray:
        """Return ΔΔG of binding ``(V,)`` float64 of variants, each with all of its mutations together.

        Raises
        ------
        MutationError
            A mutation does not fit the structure.
        SelectionError
            The structure has one chain, or more than two and no partners, or a mutation is in a chain of no partner.
        """
        return self.score_binding(_with_partners(residues), variants)

    def score_binding(self, residues: Residues, variants: Sequence[Sequence[Mutation]]) -> np.ndarray:
        """Return ΔΔG of binding ``(V,)`` float64 of a complex that has partners; chains of none are not read."""
        index = ResidueIndex(residues)
        for variant in variants:
            index.rows(variant)
            self.check_variant(residues, variant)
        both = residues.select(residues.side >= 0)
        return self._scores(both, variants, [list(both.chain_names)])

    def score_complex(self, residues: Residues, variants: Sequence[Sequence[Mutation]]) -> np.ndarray:
        """Return ΔΔG of binding ``(V,)`` float64, as :meth:`score` does."""
        return self.score(residues, variants)

    def check_variant(self, residues: Residues, variant: Sequence[Mutation]) -> None:
        """Raise :class:`SelectionError` if there are no partners, or a mutation is in a chain of none."""
        partners = _with_partners(residues).partners
        for m in variant:
            if not any(m.chain in names for names in partners or ()):
                raise SelectionError(
                    f"chain of no partner: {m} ({residues.name}). Partners: {'/'.join(map(','.join, partners or ()))}. "
                    "Mutate a chain of a partner, or give others."
                )


def _with_partners(residues: Residues) -> Residues:
    """Return a complex with its partners; those of a structure with two chains are the chains.

    Raises
    ------
    SelectionError
        There is one chain, or more than two and no partners.
    """
    if residues.partners is not None:
        return residues
    names = residues.chain_names
    if len(names) == 2:
        return replace(residues, partners=tuple((name,) for name in names))
    listed = ", ".join(map(repr, names))
    if len(names) < 2:
        raise SelectionError(
            f"no complex: {residues.name} has one chain, {listed}. A model of binding needs two partners. Give a "
            "structure of the complex, or --assembly 1; --model ddg is for folding."
        )
    raise SelectionError(
        f"partners unknown: {residues.name} has the chains {listed}. Give the chains of both sides, e.g. "
        f"--partners {names[0]}/{names[1]}."
    )
