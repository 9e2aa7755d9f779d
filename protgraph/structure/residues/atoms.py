"""What a node can be: a residue, a backbone atom, a heavy atom; atoms by name and element; the dense view of 37."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from protgraph.errors import MissingCoordinatesError, OptionError
from protgraph.structure.residues.residues import BACKBONE, Residues

__all__ = ["ATOM37", "ELEMENTS", "NODE_TYPES", "NodeAtoms", "atom37", "nodes_of"]

NODE_TYPES = ("residue", "backbone", "atom")
"""Residues (at their CA); atoms N, CA, C, O; all heavy atoms."""

ATOM37 = (
    *("N", "CA", "C", "CB", "O", "CG", "CG1", "CG2", "OG", "OG1", "SG", "CD", "CD1", "CD2", "ND1", "ND2", "OD1"),
    *("OD2", "SD", "CE", "CE1", "CE2", "CE3", "NE", "NE1", "NE2", "OE1", "OE2", "CH2", "NH1", "NH2", "OH", "CZ"),
    *("CZ2", "CZ3", "NZ", "OXT"),
)
"""Names of the heavy atoms of the twenty amino acids (order of AlphaFold: Jumper et al. 2021, residue_constants)."""

_SYMBOLS = """
H HE LI BE B C N O F NE NA MG AL SI P S CL AR K CA SC TI V CR MN FE CO NI CU ZN GA GE AS SE BR KR RB SR Y ZR NB MO TC
RU RH PD AG CD IN SN SB TE I XE CS BA LA CE PR ND PM SM EU GD TB DY HO ER TM YB LU HF TA W RE OS IR PT AU HG TL PB BI PO
AT RN FR RA AC TH PA U NP PU AM CM BK CF ES FM MD NO LR RF DB SG BH HS MT DS RG CN NH FL MC LV TS OG
"""
ELEMENTS = tuple(_SYMBOLS.split())
"""Symbols of the elements 1 to 118."""


_PARTS = ("atom_pos", "atom_name", "atom_element")


@dataclass(frozen=True, eq=False)
class NodeAtoms:
    """The nodes of a graph of one protein, in the order of its residues.

    Parameters
    ----------
    node_type : str
        One of :data:`NODE_TYPES`.
    residue : ndarray
        ``(M,)`` int64, residue of each node.
    atom : ndarray
        ``(M,)`` int64, which atom of the residues each node is; −1 for residues and for atoms of ligands, which come
        last and are of "residues" past the last one, a number for each ligand.
    pos : ndarray
        ``(M, 3)``, Å.
    name, element : ndarray
        ``(M,)`` str, of the atom; "CA" and "C" for residues.
    """

    node_type: str
    residue: np.ndarray
    atom: np.ndarray
    pos: np.ndarray
    name: np.ndarray
    element: np.ndarray

    def __len__(self) -> int:
        return len(self.residue)

    @property
    def atom_type(self) -> np.ndarray:
        """``(M,)`` int64, place in :data:`ATOM37`, 37 for any other name and for ligands."""
        return np.where(self.is_ligand, len(ATOM37), _places(self.name, ATOM37, missing=len(ATOM37)))

    @property
    def is_ligand(self) -> np.ndarray:
        """``(M,)`` bool, the atoms of ligands."""
        return (self.atom < 0) & (self.node_type != "residue")

    @property
    def atomic_number(self) -> np.ndarray:
        """``(M,)`` int64, 0 for an unknown symbol."""
        return _places(self.element, ELEMENTS, missing=-1) + 1

    def ids(self, residues: Residues) -> np.ndarray:
        """``(M,)`` str, "A:42" of residues, "A:42:CB" of atoms."""
        ids = np.array([*residues.ids, *(residues.ligands.ids if self.is_ligand.any() else ())], dtype=str)
        if self.node_type == "residue":
            return ids
        return np.char.add(np.char.add(ids[self.residue], ":"), self.name)

    @cached_property
    def _node_of_atom(self) -> np.ndarray:
        node = np.full(self.atom.max(initial=-1) + 1, -1)
        own = np.flatnonzero(self.atom >= 0)
        node[self.atom[own]] = own
        return node

    def of_atoms(self, atoms: np.ndarray) -> np.ndarray:
        """Node of each atom, ``(…)`` int64 to ``(…)``; −1 where no node is that atom."""
        inside = atoms < len(self._node_of_atom)
        return np.where(inside, self._node_of_atom[np.where(inside, atoms, 0)], -1)


def nodes_of(residues: Residues, node_type: str) -> NodeAtoms:
    """The nodes that a graph of these residues has.

    Parameters
    ----------
    residues : Residues
    node_type : str
        One of :data:`NODE_TYPES`. The atoms of ligands are among "atom" where the residues have some.

    Raises
    ------
    OptionError
        Another node type.
    MissingCoordinatesError
        Atoms are asked of a protein that is only a sequence.
    """
    if node_type not in NODE_TYPES:
        raise OptionError(f"node_type is one of {', '.join(map(repr, NODE_TYPES))}, got {node_type!r}")
    n = len(residues)
    if node_type == "residue":
        none, names = np.full(n, -1), (np.full(n, "CA"), np.full(n, "C"))
        return NodeAtoms(node_type, np.arange(n), none, residues.pos, *names)
    if not residues.has_coordinates:
        raise MissingCoordinatesError(f"{residues.name} is only a sequence; a graph of atoms needs a structure file")
    taken = np.arange(len(residues.atom_name))
    if node_type == "backbone":
        taken = np.flatnonzero(np.isin(residues.atom_name, BACKBONE))
    owner, atom = residues.atom_residue[taken], taken
    parts = [getattr(residues, name)[taken] for name in _PARTS]
    if node_type == "atom" and residues.ligands is not None:
        more = residues.ligands
        owner, atom = np.r_[owner, n + more.atom_molecule], np.r_[atom, np.full(len(more.atom_name), -1)]
        parts = [np.concatenate([own, getattr(more, name)]) for own, name in zip(parts, _PARTS, strict=True)]
        parts[0] = parts[0].astype(residues.atom_pos.dtype)
    return NodeAtoms(node_type, owner, atom, *parts)


def atom37(residues: Residues) -> tuple[np.ndarray, np.ndarray]:
    """Every residue's atoms at fixed places.

    Parameters
    ----------
    residues : Residues

    Returns
    -------
    pos : ndarray
        ``(N, 37, 3)``, Å, in the order of :data:`ATOM37`; NaN where an atom is missing.
    mask : ndarray
        ``(N, 37)`` bool, which atoms are there. Atoms of other names (of modified residues) have no place.

    Examples
    --------
    >>> pos, mask = atom37(residues)  # doctest: +SKIP
    >>> bool((pos[:, 1] == residues.pos).all())  # doctest: +SKIP
    True
    """
    place = _places(residues.atom_name, ATOM37, missing=-1)
    own = np.flatnonzero(place >= 0)
    pos = np.full((len(residues), len(ATOM37), 3), np.nan, residues.atom_pos.dtype)
    pos[residues.atom_residue[own], place[own]] = residues.atom_pos[own]
    return pos, ~np.isnan(pos[..., 0])


def _places(texts: np.ndarray, order: tuple[str, ...], *, missing: int) -> np.ndarray:
    """``(M,)`` int64, place of each text in an order."""
    known, which = np.unique(texts, return_inverse=True)
    place = {name: i for i, name in enumerate(order)}
    return np.array([place.get(str(name), missing) for name in known], np.int64)[which]
