"""Nodes of a graph as residues, backbone atoms or heavy atoms; atom names and elements; dense 37-atom coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from protgraph.errors import MissingCoordinatesError, OptionError
from protgraph.structure.residues.identity import residue_ids
from protgraph.structure.residues.residues import BACKBONE, Residues

__all__ = ["ATOM37", "ELEMENTS", "NODE_TYPES", "NodeAtoms", "atom37", "nodes_of"]

NODE_TYPES = ("residue", "backbone", "atom")
"""Residues (at their CA); atoms N, CA, C, O; all heavy atoms."""

ATOM37 = (
    *("N", "CA", "C", "CB", "O", "CG", "CG1", "CG2", "OG", "OG1", "SG", "CD", "CD1", "CD2", "ND1", "ND2", "OD1"),
    *("OD2", "SD", "CE", "CE1", "CE2", "CE3", "NE", "NE1", "NE2", "OE1", "OE2", "CH2", "NH1", "NH2", "OH", "CZ"),
    *("CZ2", "CZ3", "NZ", "OXT"),
)
"""Names of the heavy atoms of the twenty amino acids, in AlphaFold's order (Jumper et al. 2021, residue_constants)."""

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

    ``node_type``: one of :data:`NODE_TYPES`. ``residue``: ``(M,)`` int64, residue of each node. ``atom``: ``(M,)``
    int64, index of each node among the atoms of the residues; −1 for residues and for atoms of ligands. Ligand atoms
    come last; each ligand has a number in ``residue`` after the last residue. ``pos``: ``(M, 3)``, Å. ``name``,
    ``element``: ``(M,)`` str, atom name and element; "CA" and "C" for residues.
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
        """Index in :data:`ATOM37`, ``(M,)`` int64; 37 for any other name and for ligands."""
        return np.where(self.is_ligand, len(ATOM37), _indices(self.name, ATOM37, missing=len(ATOM37)))

    @property
    def is_ligand(self) -> np.ndarray:
        """True for atoms of ligands, ``(M,)`` bool."""
        return (self.atom < 0) & (self.node_type != "residue")

    @property
    def atomic_number(self) -> np.ndarray:
        """Atomic numbers, ``(M,)`` int64; 0 for an unknown symbol."""
        return _indices(self.element, ELEMENTS, missing=-1) + 1

    def ids(self, residues: Residues) -> np.ndarray:
        """Return readable ids, ``(M,)`` str: "A:42" for residues, "A:42:CB" for atoms."""
        if self.node_type == "residue":
            return np.array(residue_ids(residues.chain, residues.res_id, residues.ins_code), dtype=str)
        names = residues.ids
        if residues.ligands is not None and self.is_ligand.any():
            names = [*names, *residues.ligands.ids]
        ids = np.array(names, dtype=str)
        return np.char.add(np.char.add(ids[self.residue], ":"), self.name)

    @cached_property
    def _node_of_atom(self) -> np.ndarray:
        node = np.full(self.atom.max(initial=-1) + 1, -1)
        rows = np.flatnonzero(self.atom >= 0)
        node[self.atom[rows]] = rows
        return node

    def of_atoms(self, atoms: np.ndarray) -> np.ndarray:
        """Return the node of each atom, ``(…)`` int64 to ``(…)``; −1 for atoms without a node."""
        inside = atoms < len(self._node_of_atom)
        return np.where(inside, self._node_of_atom[np.where(inside, atoms, 0)], -1)


def nodes_of(residues: Residues, node_type: str) -> NodeAtoms:
    """Return the nodes of a graph of residues.

    ``node_type``: one of :data:`NODE_TYPES`. "atom" includes the atoms of ligands, if the residues have ligands. Raises
    :class:`OptionError` for another node type. Raises :class:`MissingCoordinatesError` for atoms of a protein that is
    only a sequence.
    """
    if node_type not in NODE_TYPES:
        raise OptionError(f"node_type is one of {', '.join(map(repr, NODE_TYPES))}, got {node_type!r}")
    n = len(residues)
    if node_type == "residue":
        none, names = np.full(n, -1), (np.full(n, "CA"), np.full(n, "C"))
        return NodeAtoms(node_type, np.arange(n), none, residues.pos, *names)
    if not residues.has_coordinates:
        raise MissingCoordinatesError(
            f"{residues.name} is only a sequence. A graph of atoms requires a structure file."
        )
    atom = np.arange(len(residues.atom_name))
    if node_type == "backbone":
        atom = np.flatnonzero(np.isin(residues.atom_name, BACKBONE))
    residue = residues.atom_residue[atom]
    tables = [getattr(residues, name)[atom] for name in _PARTS]
    if node_type == "atom" and residues.ligands is not None:
        ligands = residues.ligands
        residue = np.r_[residue, n + ligands.atom_molecule]
        atom = np.r_[atom, np.full(len(ligands.atom_name), -1)]
        tables = [np.concatenate([part, getattr(ligands, name)]) for part, name in zip(tables, _PARTS, strict=True)]
        tables[0] = tables[0].astype(residues.atom_pos.dtype)
    return NodeAtoms(node_type, residue, atom, *tables)


def atom37(residues: Residues) -> tuple[np.ndarray, np.ndarray]:
    """Arrange the atoms of each residue in the order of :data:`ATOM37`.

    Returns ``pos``: ``(N, 37, 3)``, Å; NaN for missing atoms. ``mask``: ``(N, 37)`` bool, True for present atoms.

    Examples
    --------
    >>> from protgraph.structure import clean, load_structure
    >>> residues = clean(load_structure("datasets/pdb_core/structures/1crn.bcif"))
    >>> pos, mask = atom37(residues)
    >>> pos.shape, bool((pos[:, 1] == residues.pos).all())
    ((46, 37, 3), True)
    """
    column = _indices(residues.atom_name, ATOM37, missing=-1)
    atoms = np.flatnonzero(column >= 0)
    pos = np.full((len(residues), len(ATOM37), 3), np.nan, residues.atom_pos.dtype)
    pos[residues.atom_residue[atoms], column[atoms]] = residues.atom_pos[atoms]
    return pos, ~np.isnan(pos[..., 0])


def _indices(texts: np.ndarray, order: tuple[str, ...], *, missing: int) -> np.ndarray:
    """Return the index of each string in ``order``, ``(M,)`` int64."""
    names, inverse = np.unique(texts, return_inverse=True)
    index = {name: i for i, name in enumerate(order)}
    return np.array([index.get(str(name), missing) for name in names], np.int64)[inverse]
