"""Variants of a structure as sets of mutated rows, and sums of log-odds over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from protgraph.structure import ALPHABET, Residues
from protgraph.structure.mutation import Mutation, ResidueIndex

__all__ = ["SiteDifference", "site_differences", "sum_log_odds"]


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
    index, result = ResidueIndex(residues), []
    for variant in variants:
        found = zip(index.rows(variant).tolist(), variant, strict=True)
        changed = sorted((row, m.wild_type, m.mutant) for row, m in found if not m.is_synonymous)
        rows, old, new = zip(*changed, strict=True) if changed else ((), (), ())
        result.append(SiteDifference(rows, tuple(map(ALPHABET.index, old)), tuple(map(ALPHABET.index, new))))
    return result


def sum_log_odds(differences: Sequence[SiteDifference], log_probs: Mapping[tuple[int, ...], np.ndarray]) -> np.ndarray:
    """Return ``Σ_i log p_i(wild type) − log p_i(mutant)`` ``(V,)`` float64; exactly 0 without differences.

    Parameters
    ----------
    differences : sequence of SiteDifference
    log_probs : mapping of tuple of int to ndarray
        ``(M, types)`` for each set of rows, in its order.
    """
    scores = np.zeros(len(differences))
    for number, d in enumerate(differences):
        if d.rows:
            table, sites = log_probs[d.rows].astype(np.float64), np.arange(len(d.rows))
            scores[number] = (table[sites, d.wild_type] - table[sites, d.mutant]).sum()
    return scores
