"""Hydrogen bonds of backbone and side chains by geometry (Baker & Hubbard 1984), with inferred hydrogens."""

# Not biotite's hbond: it requires hydrogens; with hydride 70 times the time (biotite 1.6.0, 2026-11-22).

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from protgraph_plugins.interactions.functional_groups import atom_mask, atoms_by_name, close_atom_pairs

from protgraph.structure.chemistry import amide_hydrogen
from protgraph.structure.descriptors import unit
from protgraph.structure.residues import THREE_LETTER, Residues

__all__ = ["HBOND_ANGLE", "HBOND_DISTANCE", "fixed_hydrogens", "hydrogen_bonds"]

HBOND_DISTANCE = 2.5
"""Upper limit of the distance H…A of a hydrogen bond D–H…A, Å (Baker & Hubbard 1984)."""

HBOND_ANGLE = 120.0
"""Lower limit of the angle at H of a hydrogen bond D–H…A, degrees (Baker & Hubbard 1984)."""

_LARGEST_COSINE = np.cos(np.radians(HBOND_ANGLE))
_NH, _OH = 1.01, 0.96  # Å
_TETRAHEDRAL = np.radians(180 - 109.5)  # between D − X and H − D if X–D–H is tetrahedral
_REACH = HBOND_DISTANCE + _NH  # Å, largest distance of donor and acceptor

_RING_NITROGENS = {"HIS": ("ND1", "NE2")}
# Donor and the two atoms bound to it; its one hydrogen points away from both.
_OPPOSITE = (
    ("HIS", "ND1", "CG", "CE1"),
    ("HIS", "NE2", "CD2", "CE1"),
    ("TRP", "NE1", "CD1", "CE2"),
    ("ARG", "NE", "CD", "CZ"),
)
# Donor, the atom X bound to it, an atom Y bound to X; D–H is antiparallel to X → Y, for each of the two Y.
_AMIDES = (
    *(("ASN", "ND2", "CG", y) for y in ("OD1", "CB")),
    *(("GLN", "NE2", "CD", y) for y in ("OE1", "CG")),
    *(("ARG", "NH1", "CZ", y) for y in ("NE", "NH2")),
    *(("ARG", "NH2", "CZ", y) for y in ("NE", "NH1")),
)
# Donor and the atom bound to it; hydrogens rotate freely about this bond.
_ROTORS = (("LYS", "NZ", "CE"), ("SER", "OG", "CB"), ("THR", "OG1", "CB"), ("TYR", "OH", "CZ"))


def hydrogen_bonds(residues: Residues) -> np.ndarray:
    """Return hydrogen bonds between residues.

    Returns ``(2, P)`` int64 heavy atoms: donor, acceptor; sorted, each pair once.

    Donors are N–H, N–H₂ and N–H₃⁺ of backbone and side chains and O–H. Acceptors are all oxygens, including phosphates
    of modified residues. Ring nitrogens of histidine are both, because its protonation is unknown. Sulfur is neither.
    For freely rotating hydrogens (Ser, Thr, Tyr, Lys) there is a bond if some rotation gives one. The backbone N of the
    first residue of a chain, and after a gap, has no known hydrogen.

    References
    ----------
    Baker & Hubbard 1984, "Hydrogen bonding in globular proteins", doi:10.1016/0079-6107(84)90007-5.
    """
    acceptor = (residues.atom_element == "O") | atom_mask(residues, _RING_NITROGENS)
    donor, hydrogen = fixed_hydrogens(residues)
    bonds = [_fixed_bonds(residues, donor, hydrogen, acceptor), _rotating_bonds(residues, acceptor)]
    return np.unique(np.concatenate(bonds, axis=1), axis=1)


def fixed_hydrogens(residues: Residues) -> tuple[np.ndarray, np.ndarray]:
    """Return hydrogens whose positions follow from the heavy atoms.

    Returns ``donor``: ``(M,)`` int64, nitrogen of each hydrogen. ``hydrogen``: ``(M, 3)`` float64, Å: 1 Å from N in the
    backbone (:func:`~protgraph.structure.chemistry.amide_hydrogen`), else 1.01 Å.
    """
    # Backbone N of all residues but proline and the first of a chain.
    amide = amide_hydrogen(residues)
    n = atoms_by_name(residues, np.arange(len(residues)), ("N",))[:, 0]
    has_hydrogen = (n >= 0) & ~np.isnan(amide[:, 0])
    donors = [n[has_hydrogen]]
    hydrogens = [amide[has_hydrogen]]

    # Side chains: donor d and the atoms x and y that give the direction.
    pos = residues.atom_pos.astype(np.float64)
    for res_name, *names in _OPPOSITE:
        d, x, y = _complete_groups(residues, res_name, names)
        direction = unit(pos[d] - pos[x]) + unit(pos[d] - pos[y])
        donors.append(d)
        hydrogens.append(pos[d] + _NH * unit(direction))
    for res_name, *names in _AMIDES:
        d, x, y = _complete_groups(residues, res_name, names)
        direction = pos[x] - pos[y]
        donors.append(d)
        hydrogens.append(pos[d] + _NH * unit(direction))
    return np.concatenate(donors), np.concatenate(hydrogens)


def _complete_groups(residues: Residues, res_name: str, names: Sequence[str]) -> np.ndarray:
    """Return the atoms of these names of each residue of a type that has all of them, ``(len(names), R)`` int64."""
    rows = np.flatnonzero(residues.aatype == THREE_LETTER.index(res_name))
    atoms = atoms_by_name(residues, rows, names)
    is_complete = (atoms >= 0).all(axis=1)
    return atoms[is_complete].T


def _fixed_bonds(residues: Residues, donor: np.ndarray, hydrogen: np.ndarray, acceptor: np.ndarray) -> np.ndarray:
    """Return the bonds ``(2, P)`` of hydrogens in fixed positions."""
    pos = residues.atom_pos.astype(np.float64)
    is_donor = np.zeros(len(pos), bool)
    is_donor[donor] = True
    d, a = close_atom_pairs(residues, is_donor, acceptor, _REACH)

    # One row per hydrogen of each pair of donor and acceptor: `first` to `last` in the hydrogens sorted by donor.
    order = np.argsort(donor, kind="stable")
    first = np.searchsorted(donor, d, side="left", sorter=order)
    last = np.searchsorted(donor, d, side="right", sorter=order)
    num_hydrogens = last - first
    pair = np.repeat(np.arange(len(d)), num_hydrogens)
    first_row = np.cumsum(num_hydrogens) - num_hydrogens
    within_pair = np.arange(len(pair)) - first_row[pair]
    h = hydrogen[order[first[pair] + within_pair]]

    to_donor = pos[d[pair]] - h
    to_acceptor = pos[a[pair]] - h
    distance = np.linalg.norm(to_acceptor, axis=1)
    cosine = (unit(to_donor) * unit(to_acceptor)).sum(axis=1)
    bond = pair[(distance < HBOND_DISTANCE) & (cosine < _LARGEST_COSINE)]
    return np.stack([d[bond], a[bond]])


def _rotating_bonds(residues: Residues, acceptor: np.ndarray) -> np.ndarray:
    """Return the bonds ``(2, P)`` of hydrogens that rotate about X–D, by geometry in the plane of X, D and acceptor."""
    pos = residues.atom_pos.astype(np.float64)
    bound = np.full(len(pos), -1)  # atom X of each donor D
    for res_name, *names in _ROTORS:
        d, x = _complete_groups(residues, res_name, names)
        bound[d] = x
    d, a = close_atom_pairs(residues, bound >= 0, acceptor, _REACH)

    # Coordinates in the plane of X, D and acceptor: along X → D, and across it on the side of the acceptor.
    axis = unit(pos[d] - pos[bound[d]])
    to_acceptor = pos[a] - pos[d]
    along = (to_acceptor * axis).sum(axis=1)
    across = np.linalg.norm(to_acceptor - along[:, None] * axis, axis=1)
    length = np.where(residues.atom_element[d] == "N", _NH, _OH)
    h = np.stack([length * np.cos(_TETRAHEDRAL), length * np.sin(_TETRAHEDRAL)])  # (2, P)

    from_h = np.stack([along, across]) - h
    distance = np.linalg.norm(from_h, axis=0)
    cosine = -(h * from_h).sum(axis=0) / (length * np.maximum(distance, 1e-9))
    bond = (distance < HBOND_DISTANCE) & (cosine < _LARGEST_COSINE)
    return np.stack([d[bond], a[bond]])
