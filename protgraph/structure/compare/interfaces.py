"""Interfaces of a complex: pairs of chains with heavy atoms in contact, and their residues."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from protgraph.structure.neighbors.search import close_pairs
from protgraph.structure.residues.residues import Residues

__all__ = ["INTERFACE_CUTOFF", "ChainInterface", "chain_interfaces"]

INTERFACE_CUTOFF = 5.0
"""Largest distance of heavy atoms of two chains in contact, Å."""


@dataclass(frozen=True, eq=False)
class ChainInterface:
    """Residues of two chains in contact.

    Parameters
    ----------
    chains : tuple of str
        The two chains, in the order of the file.
    pairs : ndarray
        ``(2, P)`` int64, rows of residues in contact: of the first chain, of the second; sorted.
    """

    chains: tuple[str, str]
    pairs: np.ndarray

    @property
    def residues(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the residues of each chain with a contact, ``(R1,)`` and ``(R2,)`` int64."""
        return np.unique(self.pairs[0]), np.unique(self.pairs[1])


def chain_interfaces(residues: Residues, cutoff: float = INTERFACE_CUTOFF) -> list[ChainInterface]:
    """Return the interfaces of all pairs of chains in contact, in the order of the file.

    Parameters
    ----------
    residues : Residues
        Of any number of chains.
    cutoff : float
        Largest distance of heavy atoms in contact, Å, inclusive.

    Returns
    -------
    list of ChainInterface
        Empty for one chain.

    Notes
    -----
    For a structure of CA atoms only, the distance is that of CA; a cutoff of 8 to 10 Å is usual then.
    """
    number, names = residues.chain_number, residues.chain_names
    first, second = residues.atom_residue[close_pairs(residues.atom_pos.astype(np.float64), cutoff)]
    apart = number[first] != number[second]
    pairs = np.stack([first[apart], second[apart]])
    pairs = np.where(number[pairs[0]] < number[pairs[1]], pairs, pairs[::-1])  # the earlier chain first
    pairs = np.unique(pairs, axis=1)
    keys = number[pairs[0]] * len(names) + number[pairs[1]]
    return [
        ChainInterface((names[key // len(names)], names[key % len(names)]), pairs[:, keys == key])
        for key in np.unique(keys).tolist()
    ]
