"""Covalent bonds: within residues by the Chemical Component Dictionary (CCD), between them by distance."""

# Not biotite's connect_via_residue_names: 12 times the time, bonds across gaps, no links of ligands (1.6, 2026-11-22).

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.spatial import cKDTree

from protgraph.structure.neighbors import close_pairs
from protgraph.structure.residues import THREE_LETTER, UNKNOWN, Ligands, Residues, linked_to_next

__all__ = [
    "DISULFIDE",
    "bonds_by_name",
    "covalent_bonds",
    "disulfide_bonds",
    "has_guessed_bonds",
    "ligand_bonds",
    "ligand_links",
    "peptide_bonds",
]

DISULFIDE = 2.2
"""Longest SG–SG distance of a disulfide bond, Å (Tina et al. 2007, doi:10.1093/nar/gkm423; 2.05 Å on average)."""

_PHOSPHODIESTER = 2.0  # Å; 1.6 in nucleic acids
# Covalent radii of nonmetals, Å (bonds to metals are coordination): Cordero et al. 2008, doi:10.1039/b801115j, table 2
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
_TOLERANCE = 0.4  # Å, deviation from the sum of radii, as in the Cambridge Structural Database
_REACH = 2 * max(_RADII.values()) + _TOLERANCE  # Å, of the longest bond
_BACKBONE = (("N", "CA"), ("CA", "C"), ("C", "O"))


def covalent_bonds(residues: Residues) -> np.ndarray:
    """Return all bonds between heavy atoms: within residues, peptide bonds and disulfides.

    Returns ``(2, P)`` int64 atoms a < b, sorted.

    Within a residue, bonds follow from atom names by the CCD, at any distance. Residue names that the CCD lacks or has
    for another molecule (Amber's HID) use the parent amino acid; without one, only N–CA, CA–C and C–O are bonded. Bonds
    to ligands (:func:`ligand_links`) and other links between residues are not included.
    """
    inside = bonds_by_name(_names(residues), residues.atom_residue, residues.atom_name)
    pairs = np.concatenate([inside, peptide_bonds(residues), disulfide_bonds(residues)], axis=1)
    return np.unique(np.sort(pairs, axis=0), axis=1)


def peptide_bonds(residues: Residues) -> np.ndarray:
    """Return atoms C and N of consecutive residues, at most 2.5 Å apart, ``(2, P)`` int64."""
    linked = np.flatnonzero(linked_to_next(residues))
    c = _atom_of(residues, "C")[linked]
    n = _atom_of(residues, "N")[linked + 1]
    is_complete = (c >= 0) & (n >= 0)  # False in CA traces
    return np.stack([c[is_complete], n[is_complete]])


def disulfide_bonds(residues: Residues, cutoff: float = DISULFIDE) -> np.ndarray:
    """Return atoms SG of two cysteines at most ``cutoff`` Å apart, ``(2, P)`` int64."""
    is_cysteine = residues.aatype == _CYSTEINE
    is_sulfur = (residues.atom_name == "SG") & is_cysteine[residues.atom_residue]
    sulfur = np.flatnonzero(is_sulfur)
    pos = residues.atom_pos[sulfur].astype(np.float64)
    return sulfur[close_pairs(pos, cutoff)]


def ligand_bonds(ligands: Ligands) -> np.ndarray:
    """Return bonds within each molecule, and O3′–P of nucleotides at most 2 Å apart.

    Returns ``(2, P)`` int64 atoms. For other bonds between molecules and to the protein, see :func:`ligand_links`.

    Bonds follow from atom names by the CCD. Molecules that it lacks have those that the file states (CONECT of PDB
    files, ``chem_comp_bond`` of mmCIF, bonds of an ``AtomArray``) or, without them, bonds by distance
    (:func:`has_guessed_bonds`).
    """
    molecule_of_atom = ligands.atom_molecule
    is_unlisted = _is_unlisted(ligands)
    has_stated = _has_stated_bonds(ligands)

    # bonds within molecules: of the CCD, of the file, or by distance
    by_name = bonds_by_name(ligands.res_name, molecule_of_atom, ligands.atom_name)
    is_listed = ~is_unlisted[molecule_of_atom[by_name[0]]]
    by_name = by_name[:, is_listed]
    stated = np.unique(np.sort(ligands.bonds, axis=1), axis=0).T  # (2, B)
    is_needed = (is_unlisted & has_stated)[molecule_of_atom[stated[0]]]
    stated = stated[:, is_needed]
    by_distance = _bonds_by_distance(ligands, is_unlisted & ~has_stated)

    # links of nucleotides
    ends = np.flatnonzero(np.isin(ligands.atom_name, ("O3'", "P")))
    pos = ligands.atom_pos[ends].astype(np.float64)
    links = ends[close_pairs(pos, _PHOSPHODIESTER)]  # (2, P)
    molecule = molecule_of_atom[links]
    name = ligands.atom_name[links]
    is_between = molecule[0] != molecule[1]
    is_oxygen_and_phosphorus = name[0] != name[1]
    between = links[:, is_between & is_oxygen_and_phosphorus]
    return np.concatenate([by_name, stated, by_distance, between], axis=1)


def has_guessed_bonds(ligands: Ligands) -> np.ndarray:
    """Return ``(M,)`` bool: molecules whose bonds follow from distances; neither the CCD nor the file has them."""
    return _is_unlisted(ligands) & ~_has_stated_bonds(ligands)


def _has_stated_bonds(ligands: Ligands) -> np.ndarray:
    """Return ``(M,)`` bool: molecules of which each atom has a bond that the file states."""
    is_bonded = np.zeros(len(ligands.atom_name), bool)
    is_bonded[ligands.bonds.ravel()] = True
    has_all = np.ones(len(ligands), bool)
    has_all[ligands.atom_molecule[~is_bonded]] = False
    return has_all


def _is_unlisted(ligands: Ligands) -> np.ndarray:
    """Return ``(M,)`` bool: molecules of several atoms that the CCD does not have.

    Their name is not in the CCD (UNL), or an atom is not in the component of this name, or most of its bonds have an
    impossible length: LIG and DRG are names of components, and programs give them to any molecule.
    """
    unlisted = np.zeros(len(ligands), bool)
    molecule_of_atom = ligands.atom_molecule
    for name in np.unique(ligands.res_name).tolist():
        is_of_name = (ligands.res_name == name)[molecule_of_atom]
        is_missing = is_of_name & ~np.isin(ligands.atom_name, list(_component_atoms(name)))
        unlisted[molecule_of_atom[is_missing]] = True

    # lengths of the bonds by name
    a, b = bonds_by_name(ligands.res_name, molecule_of_atom, ligands.atom_name)
    radius = _radii(ligands.atom_element)
    distance = np.linalg.norm(ligands.atom_pos[a].astype(np.float64) - ligands.atom_pos[b], axis=1)
    is_impossible = abs(distance - radius[a] - radius[b]) > _TOLERANCE  # False for NaN, of a metal
    impossible = np.bincount(molecule_of_atom[a], weights=is_impossible, minlength=len(ligands))
    bonds = np.bincount(molecule_of_atom[a], minlength=len(ligands))
    size = np.bincount(molecule_of_atom, minlength=len(ligands))
    return (size > 1) & (unlisted | (2 * impossible > bonds))


def _bonds_by_distance(ligands: Ligands, chosen: np.ndarray) -> np.ndarray:
    """Return bonds within the chosen molecules, ``(M,)`` bool, by the criterion of :func:`ligand_links`: ``(2, P)``."""
    atoms = np.flatnonzero(chosen[ligands.atom_molecule])
    pos = ligands.atom_pos[atoms].astype(np.float64)
    a, b = atoms[close_pairs(pos, _REACH)]
    radius = _radii(ligands.atom_element)
    distance = np.linalg.norm(ligands.atom_pos[a].astype(np.float64) - ligands.atom_pos[b], axis=1)
    is_bonded = abs(distance - radius[a] - radius[b]) <= _TOLERANCE  # False for NaN, of a metal
    is_inside = ligands.atom_molecule[a] == ligands.atom_molecule[b]
    pairs = np.stack([a, b])[:, is_bonded & is_inside]
    return pairs[:, np.lexsort(pairs[::-1])]


def _radii(element: np.ndarray) -> np.ndarray:
    """Return covalent radii, ``(A,)`` Å; NaN for metals."""
    kinds, kind = np.unique(element, return_inverse=True)
    radius_of_kind = np.array([_RADII.get(name, np.nan) for name in kinds.tolist()])
    return radius_of_kind[kind]


def ligand_links(residues: Residues) -> np.ndarray:
    """Return covalent bonds of ligands to the protein and to each other, e.g. glycans and covalent inhibitors.

    ``residues``: A atoms, optionally with ligands. Returns ``(2, P)`` int64 atoms a < b; ligand atoms have indices from
    A.

    Two nonmetal atoms are bonded if their distance differs from the sum of their covalent radii by at most 0.4 Å, as in
    the Cambridge Structural Database. Molecules with any closer atoms overlap, as alternatives do, and have no bond.
    LINK and struct_conn records are not used, so all file formats give the same bonds.
    """
    ligands = residues.ligands
    if ligands is None or not len(ligands):
        return np.zeros((2, 0), np.int64)

    # atoms of the protein, then of the ligands
    n = len(residues.atom_name)
    pos = np.concatenate([residues.atom_pos, ligands.atom_pos]).astype(np.float64)
    owner = np.concatenate([residues.atom_residue, len(residues) + ligands.atom_molecule])
    element = np.concatenate([residues.atom_element, ligands.atom_element])
    radius = _radii(element)

    # pairs that may be close enough, once each
    near = cKDTree(pos[n:]).sparse_distance_matrix(cKDTree(pos), _REACH, output_type="coo_matrix")
    a = near.col.astype(np.int64)
    b = near.row + n
    is_link = (a < b) & (owner[a] != owner[b])
    a = a[is_link]
    b = b[is_link]

    # bonded, unless the two molecules overlap anywhere
    distance = np.linalg.norm(pos[a] - pos[b], axis=1)
    gap = distance - radius[a] - radius[b]  # NaN of a metal
    pair_of_owners = owner[a] * (owner[-1] + 1) + owner[b]
    overlapping = pair_of_owners[gap < -_TOLERANCE]
    is_near = abs(gap) <= _TOLERANCE
    is_bonded = is_near & ~np.isin(pair_of_owners, overlapping)
    return np.stack([a[is_bonded], b[is_bonded]])


def bonds_by_name(res_name: np.ndarray, atom_residue: np.ndarray, atom_name: np.ndarray) -> np.ndarray:
    """Return pairs of atoms bonded within each residue by the CCD.

    ``res_name``: ``(N,)`` str. ``atom_residue``, ``atom_name``: ``(A,)`` int64 ascending and str; names are unique
    within a residue. Returns ``(2, P)`` int64.
    """
    if not len(atom_name):
        return np.zeros((2, 0), np.int64)
    kinds, kind = np.unique(res_name, return_inverse=True)
    names, code = np.unique(atom_name, return_inverse=True)

    # the bonds of each kind of residue, as codes of names
    index = {name: i for i, name in enumerate(names.tolist())}
    pairs: list[tuple[int, int]] = []
    starts: list[int] = []  # of the bonds of each kind of residue among the pairs
    for res_kind in kinds.tolist():
        starts.append(len(pairs))
        for a, b in _component_bonds(res_kind):
            if a in index and b in index:
                pairs.append((index[a], index[b]))
    bonds = np.array(pairs, np.int64).reshape(-1, 2)
    first = np.array(starts, np.int64)
    size = np.diff(first, append=len(pairs))

    # the same for each residue, (M,) rows
    count = size[kind]  # (N,)
    owner = np.repeat(np.arange(len(res_name)), count)
    first_row = np.cumsum(count) - count  # (N,)
    number_in_residue = np.arange(len(owner)) - first_row[owner]
    bond = bonds[first[kind][owner] + number_in_residue]  # (M, 2)

    # look up the atoms by residue and name
    key = atom_residue * len(names) + code
    wanted = owner[:, None] * len(names) + bond
    order = np.argsort(key, kind="stable")
    row = np.searchsorted(key, wanted, sorter=order)
    atoms = order[row.clip(max=len(key) - 1)]
    is_present = (key[atoms] == wanted).all(axis=1)
    return atoms[is_present].T


_CYSTEINE = THREE_LETTER.index("CYS")


def _names(residues: Residues) -> np.ndarray:
    """Return the name of each residue in the CCD, ``(N,)``."""
    if not len(residues):
        return residues.res_name
    names, first, inverse = np.unique(residues.res_name, return_index=True, return_inverse=True)
    names_in_ccd = []
    for name, parent in zip(names.tolist(), residues.aatype[first].tolist(), strict=True):
        is_usable = parent == UNKNOWN or _is_peptide(name)
        names_in_ccd.append(name if is_usable else THREE_LETTER[parent])
    return np.array(names_in_ccd)[inverse]


def _atom_of(residues: Residues, name: str) -> np.ndarray:
    """Return the atom of this name in each residue, ``(N,)`` int64; −1 without one."""
    atom = np.full(len(residues), -1)
    atoms = np.flatnonzero(residues.atom_name == name)
    atom[residues.atom_residue[atoms]] = atoms
    return atom


@cache
def _is_peptide(name: str) -> bool:
    """Return True if a component has the bonds N–CA and CA–C."""
    bonds = {frozenset(bond) for bond in _component_bonds(name)}
    return all(frozenset(bond) in bonds for bond in _BACKBONE[:2])


@cache
def _component_bonds(name: str) -> tuple[tuple[str, str], ...]:
    """Return bonded atom names of a component, including hydrogens; those of the backbone if the CCD has none."""
    from biotite.structure import info

    return tuple(info.bonds_in_residue(name)) or _BACKBONE


@cache
def _component_atoms(name: str) -> frozenset[str]:
    """Return the names of the bonded atoms of a component; empty if the CCD does not have it."""
    from biotite.structure import info

    return frozenset(atom for bond in info.bonds_in_residue(name) for atom in bond)
