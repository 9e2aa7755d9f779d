"""Contacts and clashes of van der Waals spheres, of atoms more than three bonds apart."""

from __future__ import annotations

import numpy as np
from protgraph_plugins.interactions.bonds import covalent_bonds
from scipy.sparse import coo_array

from protgraph.structure.chemistry import vdw_radii
from protgraph.structure.descriptors import length
from protgraph.structure.neighbors import close_pairs
from protgraph.structure.residues import Residues

__all__ = ["vdw_contacts"]

_BONDS = 3  # atoms at most this many bonds apart are not in contact


def vdw_contacts(residues: Residues, low: float, high: float) -> np.ndarray:
    """Return atom pairs of two residues with a gap ``low < d − (r_a + r_b) ≤ high``, more than three bonds apart.

    ``low``, ``high``: Å; for negative gaps the spheres overlap. Returns ``(2, P)`` int64 atoms a < b.
    """
    pos = residues.atom_pos.astype(np.float64)
    radius = vdw_radii(residues)
    largest_distance = 2 * radius.max(initial=0) + max(high, 0)
    pairs = close_pairs(pos, largest_distance)

    residue_a, residue_b = residues.atom_residue[pairs]
    pairs = pairs[:, residue_a != residue_b]
    a, b = pairs
    gap = length(pos[a] - pos[b]) - (radius[a] + radius[b])
    pairs = pairs[:, (gap > low) & (gap <= high)]

    a, b = pairs
    code_of_pair = a * len(pos) + b
    is_bonded = np.isin(code_of_pair, _bonded(covalent_bonds(residues), len(pos)))
    return pairs[:, ~is_bonded]


def _bonded(bonds: np.ndarray, n: int) -> np.ndarray:
    """Return codes ``a n + b`` of atoms a and b at most three bonds apart."""
    both_ways = np.concatenate([bonds, bonds[::-1]], axis=1)
    ones = np.ones(both_ways.shape[1], np.int32)
    step = coo_array((ones, tuple(both_ways)), shape=(n, n)).tocsr()
    reach = step
    for _ in range(_BONDS - 1):
        reach = reach @ step + reach
    reach = reach.tocoo()
    return reach.row.astype(np.int64) * n + reach.col
