"""Hydrogen bonds of backbone and side chains by geometry, with hydrogens put where the heavy atoms leave them."""

from __future__ import annotations

import numpy as np

from protgraph.structure.chemistry.dssp_hbond import amide_hydrogen
from protgraph.structure.chemistry.functional_groups import atom_mask, atoms_by_name, close_atom_pairs
from protgraph.structure.residues.alphabet import THREE_LETTER
from protgraph.structure.residues.residues import Residues
from protgraph.structure.vectors import unit

__all__ = ["HBOND_ANGLE", "HBOND_DISTANCE", "fixed_hydrogens", "hydrogen_bonds"]

HBOND_DISTANCE, HBOND_ANGLE = 2.5, 120.0
"""A bond D–H…A has H…A below 2.5 Å and an angle at H above 120° (Baker & Hubbard 1984)."""

_NH, _OH = 1.01, 0.96  # Å
_TETRAHEDRAL = np.radians(180 - 109.5)  # between D − X and H − D where X–D–H is tetrahedral
_REACH = HBOND_DISTANCE + _NH  # Å between donor and acceptor, at most

_RING_NITROGENS = {"HIS": ("ND1", "NE2")}
# Donor, and the two atoms bound to it: the one hydrogen is opposite to both.
_BETWEEN = (
    ("HIS", "ND1", "CG", "CE1"),
    ("HIS", "NE2", "CD2", "CE1"),
    ("TRP", "NE1", "CD1", "CE2"),
    ("ARG", "NE", "CD", "CZ"),
)
# Donor, the atom X bound to it, an atom Y bound to X: a hydrogen antiparallel to X → Y, for each of the two Y.
_AMIDES = (
    *(("ASN", "ND2", "CG", y) for y in ("OD1", "CB")),
    *(("GLN", "NE2", "CD", y) for y in ("OE1", "CG")),
    *(("ARG", "NH1", "CZ", y) for y in ("NE", "NH2")),
    *(("ARG", "NH2", "CZ", y) for y in ("NE", "NH1")),
)
# Donor, and the atom bound to it, about whose bond hydrogens turn freely.
_ROTORS = (("LYS", "NZ", "CE"), ("SER", "OG", "CB"), ("THR", "OG1", "CB"), ("TYR", "OH", "CZ"))


def hydrogen_bonds(residues: Residues) -> np.ndarray:
    """Hydrogen bonds between residues.

    Parameters
    ----------
    residues : Residues

    Returns
    -------
    ndarray
        ``(2, P)`` int64 heavy atoms: donor, acceptor; sorted, each pair once.

    Notes
    -----
    Donors are N–H, N–H₂ and N–H₃⁺ of backbone and side chains and O–H; acceptors all oxygens, a modified residue's
    phosphate too, and the ring nitrogens of histidine, which count as both, since its protonation is unknown. Sulfur
    is neither. Where a bond turns freely (Ser, Thr, Tyr, Lys) the hydrogen is in the plane of the acceptor, on its
    side: there is a bond if some rotation makes one. The backbone N of a chain's first residue, and after a gap, has no
    known hydrogen.

    References
    ----------
    Baker & Hubbard 1984, "Hydrogen bonding in globular proteins", doi:10.1016/0079-6107(84)90007-5.
    """
    acceptor = (residues.atom_element == "O") | atom_mask(residues, _RING_NITROGENS)
    donor, hydrogen = fixed_hydrogens(residues)
    found = [_fixed(residues, donor, hydrogen, acceptor), _turning(residues, acceptor)]
    return np.unique(np.concatenate(found, axis=1), axis=1)


def fixed_hydrogens(residues: Residues) -> tuple[np.ndarray, np.ndarray]:
    """Hydrogens whose places the heavy atoms determine.

    Parameters
    ----------
    residues : Residues

    Returns
    -------
    donor : ndarray
        ``(M,)`` int64, the nitrogen that each is bound to.
    hydrogen : ndarray
        ``(M, 3)`` float64, Å: amides of the backbone 1 Å from N (:func:`~protgraph.structure.chemistry.amide_hydrogen`),
        all others 1.01 Å.
    """
    amide, pos = amide_hydrogen(residues), residues.atom_pos.astype(np.float64)
    n = atoms_by_name(residues, np.arange(len(residues)), ("N",))[:, 0]
    known = (n >= 0) & ~np.isnan(amide[:, 0])
    donors, hydrogens = [n[known]], [amide[known]]
    for res_name, *names in (*_BETWEEN, *_AMIDES):
        rows = np.flatnonzero(residues.aatype == THREE_LETTER.index(res_name))
        atoms = atoms_by_name(residues, rows, names)
        d, x, y = atoms[(atoms >= 0).all(1)].T
        if (res_name, *names) in _BETWEEN:
            way = unit(pos[d] - pos[x]) + unit(pos[d] - pos[y])
        else:
            way = pos[x] - pos[y]
        donors.append(d)
        hydrogens.append(pos[d] + _NH * unit(way))
    return np.concatenate(donors), np.concatenate(hydrogens)


def _fixed(residues: Residues, donor: np.ndarray, hydrogen: np.ndarray, acceptor: np.ndarray) -> np.ndarray:
    """``(2, P)`` bonds of hydrogens in known places."""
    pos = residues.atom_pos.astype(np.float64)
    is_donor = np.zeros(len(pos), bool)
    is_donor[donor] = True
    d, a = close_atom_pairs(residues, is_donor, acceptor, _REACH)
    order = np.argsort(donor, kind="stable")
    first, last = (np.searchsorted(donor, d, side, sorter=order) for side in ("left", "right"))
    pair = np.repeat(np.arange(len(d)), last - first)  # one row for each hydrogen of a donor
    within = np.arange(len(pair)) - np.repeat(np.cumsum(last - first) - (last - first), last - first)
    h = hydrogen[order[first[pair] + within]]
    to_donor, to_acceptor = pos[d[pair]] - h, pos[a[pair]] - h
    length = np.linalg.norm(to_acceptor, axis=1)
    cosine = (unit(to_donor) * unit(to_acceptor)).sum(1)
    bond = pair[(length < HBOND_DISTANCE) & (cosine < np.cos(np.radians(HBOND_ANGLE)))]
    return np.stack([d[bond], a[bond]])


def _turning(residues: Residues, acceptor: np.ndarray) -> np.ndarray:
    """``(2, P)`` bonds of hydrogens that turn about X–D; all is measured in the plane of X, D and the acceptor."""
    pos, bound = residues.atom_pos.astype(np.float64), np.full(len(residues.atom_name), -1)
    for res_name, *names in _ROTORS:
        atoms = atoms_by_name(residues, np.flatnonzero(residues.aatype == THREE_LETTER.index(res_name)), names)
        d, x = atoms[(atoms >= 0).all(1)].T
        bound[d] = x
    d, a = close_atom_pairs(residues, bound >= 0, acceptor, _REACH)
    axis, way = unit(pos[d] - pos[bound[d]]), pos[a] - pos[d]
    along = (way * axis).sum(1)
    aside = np.linalg.norm(way - along[:, None] * axis, axis=1)
    length = np.where(residues.atom_element[d] == "N", _NH, _OH)
    h = length * np.stack([np.full(len(d), np.cos(_TETRAHEDRAL)), np.full(len(d), np.sin(_TETRAHEDRAL))])  # (2, P)
    to_acceptor = np.stack([along, aside]) - h
    distance = np.linalg.norm(to_acceptor, axis=0)
    cosine = -(h * to_acceptor).sum(0) / (length * np.maximum(distance, 1e-9))
    bond = (distance < HBOND_DISTANCE) & (cosine < np.cos(np.radians(HBOND_ANGLE)))
    return np.stack([d[bond], a[bond]])
