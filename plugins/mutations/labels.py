"""Labels of a variant: its mutations, and one value."""

from __future__ import annotations

from dataclasses import dataclass

from protgraph.data.datasets.labels import ProteinLabels
from protgraph.structure.mutation import Mutation

__all__ = ["MutationLabels"]


@dataclass(frozen=True, eq=False)
class MutationLabels(ProteinLabels):
    """Value of a variant of a protein.

    Parameters
    ----------
    value : ndarray or float
        As of :class:`~protgraph.data.datasets.labels.ProteinLabels`, e.g. ΔΔG, kcal/mol.
    mutations : tuple of Mutation
        All substitutions of the variant, one or more.
    """

    mutations: tuple[Mutation, ...] = ()
