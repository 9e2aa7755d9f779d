"""Covalent bonds: within residues by the Chemical Component Dictionary, between them by distance."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.spatial import cKDTree

from protgraph.structure.neighbors.search import close_pairs
from protgraph.structure.residues.alphabet import THREE_LETTER, UNKNOWN
from protgraph.structure.residues.chain_breaks import linked_to_next
from protgraph.structure.residues.ligands import Ligands
from protgraph.structure.residues.residues import Residues

__all__ = [
    "DISULFIDE",
    "bonds_by_name",
    "covalent_bonds",
    "disulfide_bonds",
    "ligand_bonds",
    "ligand_links",
    "peptide_bonds",
]

DISULFIDE = 2.2
"""Longest SG–SG distance of a disulfide bond, Å (Tina et al. 2007, doi:10.1093/nar/gkm423; 2.05 Å on average)."""

_PHOSPHODIESTER = 2.0  # Å; 1.6 in nucleic acids
# Covalent radii, Å, of what ligands are made of but metals, to which bonds are coordination: Cordero et al. 2008,
# doi:10.1039/b801115j, table 2.
_RADII = {
    "B": 0.84,
    "C": 0.76,
    "N": 0.71,
    "O": 0.66,
    "F": 0.57,
    "SI": 1.11,
    "P": 1.07,
    "S": 1.05,
    "CL": 1.02,
    "AS": 1.19,
    "SE": 1.20,
    "BR": 1.20,
    "I": 1.39,
}
_TOLERANCE = 0.4  # Å, of the Cambridge Structural Database, either way
_BACKBONE = (("N", "CA"), ("CA", "C"), ("C", "O"))


def covalent_bonds(residues: Residues) -> np.ndarray:
    """All bonds between heavy atoms: within residues, peptide bonds and disulfides.

    Parameters
    ----------
    residues : Residues

    Returns
    -------
    ndarray
        ``(2, P)`` int64 atoms a < b, sorted.

    Notes
    -----
    Within a residue the Chemical Component Dictionary says which atom names are bonded, whatever their distance; of a
    name that it lacks or gives to another molecule (Amber's HID), the parent amino acid. Where it knows none, only
    N–CA, CA–C and C–O are. Bonds to ligands (:func:`ligand_links`) and other links between residues are none
    of these.
    """
    own = bonds_by_name(_names(residues), residues.atom_residue, residues.atom_name)
    pairs = np.concatenate([own, peptide_bonds(residues), disulfide_bonds(residues)], axis=1)
    return np.unique(np.sort(pairs, axis=0), axis=1)


def peptide_bonds(residues: Residues) -> np.ndarray:
    """``(2, P)`` int64 atoms C and N of residues that follow each other in the chain (at most 2.5 Å apart)."""
    linked = np.flatnonzero(linked_to_next(residues))
    c, n = _atom_of(residues, "C")[linked], _atom_of(residues, "N")[linked + 1]
    there = (c >= 0) & (n >= 0)  # neighbors of a CA trace have no such atoms
    return np.stack([c[there], n[there]])


def disulfide_bonds(residues: Residues, cutoff: float = DISULFIDE) -> np.ndarray:
    """``(2, P)`` int64 atoms SG of two cysteines at most ``cutoff`` apart, Å."""
    own = np.flatnonzero((residues.atom_name == "SG") & (residues.aatype == _CYSTEINE)[residues.atom_residue])
    return own[close_pairs(residues.atom_pos[own].astype(np.float64), cutoff)]


def ligand_bonds(ligands: Ligands) -> np.ndarray:
    """Bonds within each molecule by the dictionary, and of nucleotides O3′–P where at most 2 Å apart.

    Parameters
    ----------
    ligands : Ligands

    Returns
    -------
    ndarray
        ``(2, P)`` int64 atoms. Other bonds between two molecules, and to the protein, are :func:`ligand_links`.
    """
    own = bonds_by_name(ligands.res_name, ligands.atom_molecule, ligands.atom_name)
    ends = np.flatnonzero(np.isin(ligands.atom_name, ("O3'", "P")))
    links = ends[close_pairs(ligands.atom_pos[ends].astype(np.float64), _PHOSPHODIESTER)]
    between = ligands.atom_molecule[links[0]] != ligands.atom_molecule[links[1]]
    named = ligands.atom_name[links[0]] != ligands.atom_name[links[1]]
    return np.concatenate([own, links[:, between & named]], axis=1)


def ligand_links(residues: Residues) -> np.ndarray:
    """Covalent bonds of ligands to the protein and to each other: glycans, inhibitors on a serine, haem on cysteines.

    Parameters
    ----------
    residues : Residues
        With A atoms, maybe with ligands.

    Returns
    -------
    ndarray
        ``(2, P)`` int64 atoms a < b; those of ligands count from A.

    Notes
    -----
    Bonded are two atoms, neither of a metal, whose distance differs from the sum of their covalent radii by at most
    0.4 Å, the rule of the Cambridge Structural Database. A residue and a molecule, or two molecules, of which two atoms
    are closer than that lie in each other's place, as alternatives do: they have no bond. All files give the same,
    whether they have LINK or struct_conn records or not.
    """
    ligands, n = residues.ligands, len(residues.atom_name)
    if ligands is None or not len(ligands):
        return np.zeros((2, 0), np.int64)
    pos = np.concatenate([residues.atom_pos, ligands.atom_pos]).astype(np.float64)
    owner = np.concatenate([residues.atom_residue, len(residues) + ligands.atom_molecule])
    element, kind = np.unique(np.concatenate([residues.atom_element, ligands.atom_element]), return_inverse=True)
    radius = np.array([_RADII.get(str(e), np.nan) for e in element])[kind]
    reach = 2 * max(_RADII.values()) + _TOLERANCE
    near = cKDTree(pos[n:]).sparse_distance_matrix(cKDTree(pos), reach, output_type="coo_matrix")
    a, b = near.col.astype(np.int64), near.row + n
    other = (a < b) & (owner[a] != owner[b])
    a, b = a[other], b[other]
    gap = np.linalg.norm(pos[a] - pos[b], axis=1) - radius[a] - radius[b]  # NaN of a metal
    which = owner[a] * (owner[-1] + 1) + owner[b]
    bonded = (abs(gap) <= _TOLERANCE) & ~np.isin(which, which[gap < -_TOLERANCE])
    return np.stack([a[bonded], b[bonded]])


def bonds_by_name(res_name: np.ndarray, atom_residue: np.ndarray, atom_name: np.ndarray) -> np.ndarray:
    """Pairs of atoms that the dictionary bonds within each residue.

    Parameters
    ----------
    res_name : ndarray
        ``(N,)`` str.
    atom_residue, atom_name : ndarray
        ``(A,)`` int64 ascending and str; no residue has a name twice.

    Returns
    -------
    ndarray
        ``(2, P)`` int64.
    """
    kinds, kind = np.unique(res_name, return_inverse=True)
    names, code = np.unique(atom_name, return_inverse=True)
    place = {str(name): i for i, name in enumerate(names)}
    table = [[(place[a], place[b]) for a, b in _component_bonds(str(k)) if a in place and b in place] for k in kinds]
    size = np.array([len(bonds) for bonds in table], np.int64)
    first = np.cumsum(size) - size
    bonds = np.array([pair for own in table for pair in own], np.int64).reshape(-1, 2)
    count = size[kind]  # (N,)
    owner = np.repeat(np.arange(len(res_name)), count)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    wanted = owner[:, None] * max(len(names), 1) + bonds[first[kind][owner] + within]  # (M, 2)
    key = atom_residue * max(len(names), 1) + code
    order = np.argsort(key, kind="stable")
    at = np.searchsorted(key, wanted, sorter=order).clip(max=max(len(key) - 1, 0))
    found = order[at] if len(key) else np.zeros(wanted.shape, np.int64)
    there = (key[found] == wanted).all(1) if len(key) else np.zeros(len(wanted), bool)
    return found[there].T


_CYSTEINE = THREE_LETTER.index("CYS")


def _names(residues: Residues) -> np.ndarray:
    """``(N,)`` name of each residue in the dictionary."""
    names, which = np.unique(residues.res_name, return_inverse=True)
    first = np.unique(which, return_index=True)[1]
    parents = [THREE_LETTER[t] for t in residues.aatype[first]]
    known = [n if _is_peptide(str(n)) or p == THREE_LETTER[UNKNOWN] else p for n, p in zip(names, parents, strict=True)]
    return np.array(known)[which] if len(names) else residues.res_name


def _atom_of(residues: Residues, name: str) -> np.ndarray:
    """``(N,)`` int64, the atom of this name in each residue, −1 where there is none."""
    atom = np.full(len(residues), -1)
    own = np.flatnonzero(residues.atom_name == name)
    atom[residues.atom_residue[own]] = own
    return atom


@cache
def _is_peptide(name: str) -> bool:
    return {frozenset(pair) for pair in _BACKBONE[:2]} <= set(map(frozenset, _component_bonds(name)))


@cache
def _component_bonds(name: str) -> tuple[tuple[str, str], ...]:
    """Bonded atom names of a component, hydrogens included; the backbone's where the dictionary has none."""
    from biotite.structure import info

    return tuple(info.bonds_in_residue(name)) or _BACKBONE
