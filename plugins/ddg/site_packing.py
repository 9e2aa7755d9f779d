"""Surroundings of residues without their own side chain: packing, neighbors in space and sequence, backbone."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from protgraph import FieldSpec, Residues, StructureFeaturizer, register_field
from protgraph.data import Conformity
from protgraph.structure.descriptors import backbone_dihedrals, dssp, three_states, unit, virtual_cb
from protgraph.structure.residues import ALPHABET, BACKBONE, UNKNOWN

__all__ = ["SitePacking", "surroundings"]
ENTRY_POINTS = {"protgraph.featurizers": {"site_packing": "SitePacking"}}

_REACH = (0.0, 2.8, 4.5)  # Å beyond the virtual CB: a small, a medium and a large side chain
_RADII = (4.0, 5.0, 6.0, 8.0, 10.0)  # Å around these points
_DETAILED = (5.0, 8.0)  # Å, radii for which polar atoms and side-chain carbons are counted too
_CB_RADII = (6.0, 8.0, 10.0, 14.0)  # Å between virtual CB
_HALF_SPHERE = 13.0  # Å
_CONTACT, _WIDTH = 8.0, 1.0  # Å, center and width of the soft contact between virtual CB
_CHARGE_LENGTH = 4.0  # Å
_OFFSETS = (-4, -3, -2, -1, 1, 2, 3, 4)
_WINDOW = 7  # residues of the mean secondary structure
#: Kyte & Doolittle 1982, doi:10.1016/0022-2836(82)90515-0, divided by 4.5; 0 for X.
_HYDROPATHY = {"A": 1.8, "C": 2.5, "D": -3.5, "E": -3.5, "F": 2.8, "G": -0.4, "H": -3.2, "I": 4.5, "K": -3.9, "L": 3.8}
_HYDROPATHY |= {
    "M": 1.9,
    "N": -3.5,
    "P": -1.6,
    "Q": -3.5,
    "R": -4.5,
    "S": -0.8,
    "T": -0.7,
    "V": 4.2,
    "W": -0.9,
    "Y": -1.3,
}
_HYDROPATHY_OF_TYPE = np.array([_HYDROPATHY.get(letter, 0.0) / 4.5 for letter in ALPHABET])
_NEGATIVE = frozenset({"DOD1", "DOD2", "EOE1", "EOE2"})
_POSITIVE = frozenset({"KNZ", "RNE", "RNH1", "RNH2"})
_TERMINUS = 5.0  # residues

register_field(
    FieldSpec(
        "site_packing",
        "node",
        "83x0e",
        chiral=True,
        doc="packing and neighbors of a residue without its own side chain",
    )
)


class SitePacking(StructureFeaturizer):
    """Packing around the place of each side chain, neighbors in space and in the sequence, and the backbone.

    Nothing depends on the type or the side chain of the residue itself, but on those of all others.

    Parameters
    ----------
    only_hidden : bool
        Only for residues of type X, which a task of mutations hides; the others have 0. Saves time.

    Writes
    ------
    site_packing : (N, 83) float32, 0e under rotations (chiral), dimensionless
        For three points on the line from CA through the virtual CB (at CB, 2.8 and 4.5 Å farther): heavy atoms of other
        residues within 4, 5, 6, 8 and 10 Å, and for 5 and 8 Å N and O atoms and side-chain atoms that are neither;
        screened sums of negative and positive charges at the second point (29). Virtual CB within 6, 8, 10, 14 Å; those
        before and behind CA within 13 Å (6). Neighbors by type with soft contacts at 8 Å, and their mean hydropathy
        (21). Hydropathy of the residues at sequence offsets −4 to 4, and Pro, Gly or chain end at −1 and 1 (14). Cosine
        and sine of φ and ψ; helix, strand, coil, and means of the first two over 7 residues (9). Of the chain: B factor
        in standard deviations (1), distance from both termini and length (3). Counts are scaled.

    Notes
    -----
    0 for residues without N, CA or C. DSSP gives Pro no hydrogen: there the secondary structure depends on the type. A
    computed structure has confidences in place of B factors; they are not read (0).
    """

    writes: ClassVar[tuple[str, ...]] = ("site_packing",)
    conformity = Conformity(tolerance=2e-2)  # counts within radii jump with rounded coordinates

    def __init__(self, *, only_hidden: bool = False) -> None:
        super().__init__()
        self.only_hidden = only_hidden

    def __call__(self, residues: Residues) -> dict[str, np.ndarray]:
        wanted = residues.backbone_mask[:, :3].all(1)
        if self.only_hidden:
            wanted &= residues.aatype == UNKNOWN
        rows = np.flatnonzero(wanted)
        values = np.zeros((len(residues), self.out["site_packing"].dim), np.float32)
        columns = list(surroundings(residues, rows).T)
        columns += [column[rows] for column in (*_sequence(residues), *_backbone(residues))]
        values[rows] = np.nan_to_num(np.stack(columns, 1))
        return {"site_packing": values}


def surroundings(residues: Residues, rows: np.ndarray) -> np.ndarray:
    """Return ``(R, 56)``, the columns of ``site_packing`` about other residues in space, of residues ``rows (R,)``."""
    return np.stack([*_packing(residues, rows), *_contacts(residues, rows)], 1)  # (R, 56)


def _directions(residues: Residues) -> tuple[np.ndarray, np.ndarray]:
    """Return the virtual CB ``(N, 3)`` and the unit vector from CA to it; NaN and 0 if an atom is missing."""
    cb = virtual_cb(residues.backbone)
    step = cb - residues.backbone[:, 1].astype(np.float64)
    return cb, unit(step)


def _packing(residues: Residues, rows: np.ndarray) -> list[np.ndarray]:
    """Count atoms of other residues around three points of each of the rows ``(R,)``."""
    cb, direction = _directions(residues)
    atoms = residues.atom_pos.astype(np.float64)
    residue_of_atom = residues.atom_residue

    # Kinds of atoms.
    is_polar = np.isin(residues.atom_element, ["N", "O"])
    is_apolar_side = ~is_polar & ~np.isin(residues.atom_name, BACKBONE)
    letters = np.array(list(ALPHABET))[residues.aatype[residue_of_atom]]
    names = np.char.add(letters, residues.atom_name.astype(str))
    is_negative = np.isin(names, list(_NEGATIVE))
    is_positive = np.isin(names, list(_POSITIVE))

    columns = []
    for number, reach in enumerate(_REACH):
        points = (cb + reach * direction)[rows]
        distance = np.linalg.norm(points[:, None] - atoms, axis=-1)  # (R, A)
        distance[rows[:, None] == residue_of_atom] = np.inf
        for radius in _RADII:
            inside = distance < radius
            columns.append(inside.sum(1) / (radius**3 / 10))
            if radius in _DETAILED:
                columns.append(inside[:, is_polar].sum(1) / (radius**3 / 20))
                columns.append(inside[:, is_apolar_side].sum(1) / (radius**3 / 20))
        if number == 1:
            columns.append(_screened(distance[:, is_negative]))
            columns.append(_screened(distance[:, is_positive]))
    return columns


def _screened(distance: np.ndarray) -> np.ndarray:
    """Return screened sums ``(R,)`` of charges at distances ``(R, Q)``."""
    return (1 / (1 + (distance / _CHARGE_LENGTH) ** 2)).sum(1)


def _contacts(residues: Residues, rows: np.ndarray) -> list[np.ndarray]:
    """Count virtual CB in spheres and half-spheres, and types of the residues in contact, for the rows ``(R,)``."""
    cb, direction = _directions(residues)
    distance = np.linalg.norm(cb[rows, None] - cb, axis=-1)  # (R, N)
    is_itself = rows[:, None] == np.arange(len(cb))
    distance[np.isnan(distance) | is_itself] = np.inf
    columns = [4 * (distance < radius).sum(1) / radius**2 for radius in _CB_RADII]

    # Half-spheres before and behind CA.
    step = cb - residues.backbone[rows, None, 1]
    is_ahead = (step * direction[rows, None]).sum(-1) > 0
    is_near = distance < _HALF_SPHERE
    columns.append((is_near & is_ahead).sum(1) / 10)
    columns.append((is_near & ~is_ahead).sum(1) / 10)

    # Soft contacts by type, and their hydropathy.
    weight = 1 / (1 + np.exp(np.clip((distance - _CONTACT) / _WIDTH, -50, 50)))
    types = np.eye(len(ALPHABET))[residues.aatype]
    columns += list((weight @ types[:, :20]).T / 2)
    columns.append(weight @ _HYDROPATHY_OF_TYPE[residues.aatype] / 5)
    return columns


def _sequence(residues: Residues) -> list[np.ndarray]:
    """Return properties of the neighbors in the sequence."""
    n = len(residues)
    columns = []
    for offset in _OFFSETS:
        shifted = np.arange(n) + offset
        row = shifted.clip(0, n - 1)
        in_one_chain = (shifted == row) & (residues.chain[row] == residues.chain)
        has_neighbor = in_one_chain & (residues.seq_pos[row] - residues.seq_pos == offset)
        types = residues.aatype[row]
        columns.append(np.where(has_neighbor, _HYDROPATHY_OF_TYPE[types], 0.0))
        if abs(offset) == 1:
            columns.append(has_neighbor & (types == ALPHABET.index("P")))
            columns.append(has_neighbor & (types == ALPHABET.index("G")))
            columns.append(~has_neighbor)
    return [np.asarray(column, np.float64) for column in columns]


def _backbone(residues: Residues) -> list[np.ndarray]:
    """Return dihedral angles, secondary structure, B factor and place in the chain."""
    angles = backbone_dihedrals(residues)[:, :2].astype(np.float64)  # (N, 2)
    columns = []
    for angle in angles.T:
        columns.append(np.nan_to_num(np.cos(angle)))
        columns.append(np.nan_to_num(np.sin(angle)))
    states = three_states(dssp(residues))
    helix = (states == "H").astype(np.float64)
    strand = (states == "E").astype(np.float64)
    coil = (states == "C").astype(np.float64)
    columns += [helix, strand, coil]
    of_chains = np.zeros((6, len(residues)))
    for name in residues.chain_names:
        rows = np.flatnonzero(residues.chain == name)
        of_chains[:, rows] = _of_chain(residues, rows, helix[rows], strand[rows])
    return [*columns, *of_chains]


def _of_chain(residues: Residues, rows: np.ndarray, helix: np.ndarray, strand: np.ndarray) -> np.ndarray:
    """Return ``(6, R)``: means of helix and strand, B factor, distance from both ends and length of a chain."""
    n = len(rows)
    window = np.ones(_WINDOW) / _WINDOW
    mean_helix = np.convolve(helix, window, "same")[:n]
    mean_strand = np.convolve(strand, window, "same")[:n]

    # B factors, unless they are confidences or all equal.
    b = residues.b_factor[rows].astype(np.float64)
    scaled = np.zeros(n)
    if not residues.predicted and b.std() > 1e-3:
        scaled = np.clip((b - b.mean()) / b.std(), -3, 3)

    from_start = np.arange(n)
    near_start = np.exp(-from_start / _TERMINUS)
    near_end = np.exp(-(n - 1 - from_start) / _TERMINUS)
    length = np.full(n, np.log(n / 150))
    return np.stack([mean_helix, mean_strand, scaled, near_start, near_end, length])
