"""Interface residues of a bound complex, and their transfer to the unbound partners."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
from biotite.sequence import ProteinSequence
from biotite.sequence.align import SubstitutionMatrix, align_optimal
from biotite.structure import concatenate
from scipy.spatial import cKDTree

from protgraph.structure import Residues, Structure, clean, load_structure
from protgraph.structure.descriptors import MAX_SASA, PROBE, protor_radii, residue_sasa

__all__ = ["CUTOFF", "BoundPartner", "counterparts", "read_bound"]

CUTOFF = 5.0
"""Largest distance of heavy atoms of two partners in contact, Å."""
LOST_AREA, ACCESSIBLE = 1.0, 0.05  # Å², and fraction of the largest area of the residue type
LEAST_IDENTITY = 0.5  # of the aligned residues, for two chains to be counterparts


@dataclass(frozen=True, eq=False)
class BoundPartner:
    """One partner of a bound complex.

    Parameters
    ----------
    residues : Residues
        N residues.
    in_contact : ndarray
        ``(N,)`` bool, a heavy atom within :data:`CUTOFF` of the other partner.
    loses_area : ndarray
        ``(N,)`` bool, more than 5 % of the residue is accessible without the other partner, which hides more than 1 Å².
    """

    residues: Residues
    in_contact: np.ndarray
    loses_area: np.ndarray


def read_bound(receptor: Path, ligand: Path) -> tuple[BoundPartner, BoundPartner]:
    """Read the partners of a complex and return their interface residues."""
    structures = [load_structure(path) for path in (receptor, ligand)]
    proteins = [clean(structure) for structure in structures]
    joined = _joined(structures)
    reach = 2 * (protor_radii(joined).max() + PROBE)  # residues further away lose no area
    near = {cutoff: _residues_near(*proteins, cutoff) for cutoff in (CUTOFF, reach)}
    area = residue_sasa(joined, rotate=False, only=near[reach])  # in one orientation: free residues keep their areas
    partners, first = [], 0
    for partner in proteins:
        rows = slice(first, first := first + len(partner))
        alone = residue_sasa(partner, rotate=False, only=near[reach][rows])
        accessible = alone > ACCESSIBLE * MAX_SASA[partner.aatype]
        partners.append(BoundPartner(partner, near[CUTOFF][rows], accessible & (alone - area[rows] > LOST_AREA)))
    return partners[0], partners[1]


def _residues_near(first: Residues, second: Residues, cutoff: float) -> np.ndarray:
    """Return which residues of two partners, in this order, have an atom within ``cutoff`` Å of the other partner."""
    near_of_partner = []
    for own, other in ((first, second), (second, first)):
        distance = cKDTree(other.atom_pos).query(own.atom_pos, distance_upper_bound=np.nextafter(cutoff, np.inf))[0]
        near = np.zeros(len(own), bool)
        near[own.atom_residue[distance <= cutoff]] = True
        near_of_partner.append(near)
    return np.concatenate(near_of_partner)


def counterparts(unbound: Residues, bound: Residues) -> np.ndarray:
    """Return ``(N,)`` int64, the residue of the bound partner of each unbound one; −1 without one.

    Chains are assigned by the number of identical residues of their global alignment; of equal ones, the closest in
    space, since the unbound partners are superposed on the complex.
    """
    bound_row = np.full(len(unbound), -1)
    candidates = []
    for a, b in product(unbound.chain_names, bound.chain_names):
        rows, bound_rows = np.flatnonzero(unbound.chain == a), np.flatnonzero(bound.chain == b)
        first, second = _align(unbound.select(unbound.chain == a).sequence, bound.select(bound.chain == b).sequence)
        rows, bound_rows = rows[first], bound_rows[second]
        same = int((unbound.aatype[rows] == bound.aatype[bound_rows]).sum())
        if same >= LEAST_IDENTITY * len(rows) > 0:
            away = float(np.median(np.linalg.norm(unbound.pos[rows] - bound.pos[bound_rows], axis=1)))
            candidates.append((-same, away, a, b, rows, bound_rows))
    used: set[tuple[str, str]] = set()
    for _, _, a, b, rows, bound_rows in sorted(candidates, key=lambda c: c[:4]):
        if not used & {("unbound", a), ("bound", b)}:
            bound_row[rows] = bound_rows
            used |= {("unbound", a), ("bound", b)}
    return bound_row


def _joined(structures: list[Structure]) -> Residues:
    """Return the residues of two structures in one, with chain ids that differ."""
    parts = [structure.atoms.copy() for structure in structures]
    for prefix, atoms in zip("rl", parts, strict=True):
        atoms.chain_id = np.array([prefix + chain for chain in atoms.chain_id.tolist()])
    return clean(replace(structures[0], atoms=concatenate(parts)))


def _align(first: str, second: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the aligned positions of two sequences, global alignment with free ends."""
    sequences = [ProteinSequence(text) for text in (first, second)]
    matrix = SubstitutionMatrix.std_protein_matrix()
    trace = align_optimal(*sequences, matrix, (-11, -1), terminal_penalty=False, max_number=1)[0].trace
    pairs = trace[(trace >= 0).all(axis=1)]
    return pairs[:, 0], pairs[:, 1]
