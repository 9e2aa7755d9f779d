"""Chain breaks: residues that are not bonded to the next one."""

# Not biotite's check_backbone_continuity: 60 times the time, no criterion for CA traces (1.6.0, 2026-11-22).

from __future__ import annotations

import numpy as np

from protgraph.structure.residues.residues import Residues
from protgraph.structure.vectors import length

__all__ = ["CA_BOND", "PEPTIDE_BOND", "bonded_to_next", "chain_segments", "linked_to_next"]

PEPTIDE_BOND = 2.5
"""Longest C–N distance of a peptide bond, Å (DSSP: Kabsch & Sander 1983, doi:10.1002/bip.360221211)."""

CA_BOND = 4.3
"""Longest CA–CA distance of neighbors in a chain, Å (Biopython's ``CaPPBuilder``; 3.8 if trans, 2.9 if cis)."""


def linked_to_next(residues: Residues) -> np.ndarray:
    """Return True for each residue i bonded to i + 1: same chain and ``|N_{i+1} - C_i| ≤ 2.5 Å``.

    If C or N is missing (CA traces), the criterion is ``|CA_{i+1} - CA_i| ≤ 4.3 Å``.

    Returns ``(N,)`` bool, False at chain ends and gaps.
    """
    linked = np.zeros(len(residues), dtype=bool)
    linked[:-1] = bonded_to_next(residues.chain, residues.backbone, residues.pos)
    return linked


def bonded_to_next(chain: np.ndarray, backbone: np.ndarray, ca: np.ndarray) -> np.ndarray:
    """Apply the criterion of :func:`linked_to_next` to arrays.

    ``chain``: ``(N,)`` str. ``backbone``, ``ca``: ``(N, 4, 3)`` and ``(N, 3)`` positions of N, CA, C, O, and of CA, Å;
    NaN for missing atoms. Returns ``(N − 1,)`` bool.
    """
    bond = length(backbone[1:, 0].astype(np.float64) - backbone[:-1, 2])  # (N - 1,)
    near = bond <= PEPTIDE_BOND
    is_unknown = np.isnan(bond)
    if is_unknown.any():
        near |= is_unknown & (length(ca[1:].astype(np.float64) - ca[:-1]) <= CA_BOND)
    near &= chain[1:] == chain[:-1]
    return near


def chain_segments(residues: Residues) -> np.ndarray:
    """Return the index of the unbroken chain segment of each residue, ``(N,)`` int64."""
    return np.concatenate([[0], np.cumsum(~linked_to_next(residues))])[: len(residues)]
