"""Points on the solvent-accessible surface, and the chemistry and shape of the protein around each of them.

Directions are those of an icosahedron in the frame of each residue. A sphere of directions in the frame of the file
would give other points after a rotation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from protgraph_plugins.pockets import alpha_spheres, smooth_step
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from protgraph.structure import Residues, unit
from protgraph.structure.descriptors import PROBE, protor_radii
from protgraph.structure.residues import ALPHABET, BACKBONE

__all__ = [
    "CHEMISTRY",
    "CHEMISTRY_RANGES",
    "DIRECTIONS",
    "SHAPE",
    "SurfacePoints",
    "atom_chemistry",
    "point_chemistry",
    "point_shape",
    "surface_points",
]

_GOLDEN = (1 + 5**0.5) / 2
_CORNERS = [(0.0, a, b * _GOLDEN) for a in (-1.0, 1.0) for b in (-1.0, 1.0)]
DIRECTIONS = unit(np.concatenate([np.roll(_CORNERS, turn, axis=1) for turn in range(3)]))
"""``(12, 3)`` unit vectors to the corners of an icosahedron; a reflection of an axis permutes them."""

_RIM = 0.5  # Å. A point this far outside of all other spheres has the weight 1, one on another sphere the weight 0.
_STRAIGHT = 1e-4  # sine of the angle N–CA–C below which a residue has no frame
_BLOCK = 1000  # atoms at a time, to limit the memory


class SurfacePoints(NamedTuple):
    """Points on the solvent-accessible surface, by atom, then by direction.

    Attributes
    ----------
    pos : ndarray
        ``(M, 3)`` float64, Å.
    normal : ndarray
        ``(M, 3)`` unit vectors from the atom to the point.
    atom : ndarray
        ``(M,)`` int64, the atom on whose sphere the point is.
    weight : ndarray
        ``(M,)`` 0 to 1: rises smoothly with the distance to the spheres of other atoms and is 1 from 0.5 Å on. A point
        that appears or disappears when atoms move has the weight 0, so weighted sums over points are continuous.
    """

    pos: np.ndarray
    normal: np.ndarray
    atom: np.ndarray
    weight: np.ndarray


def surface_points(residues: Residues, *, probe: float = PROBE) -> SurfacePoints:
    """Compute points where the center of a probe touches one atom and overlaps with no other.

    Parameters
    ----------
    residues : Residues
        All chains bury each other; ligands, waters and nucleic acids are ignored.
    probe : float
        Radius of the solvent molecule, Å.

    Returns
    -------
    SurfacePoints
        About four points per residue of a folded chain, at most twelve per heavy atom.

    Notes
    -----
    Test points of Shrake and Rupley, twelve per atom. Their directions are fixed in the frame of the residue (C − CA,
    N, and the normal of both). Hence they turn with the protein and do not depend on the order of chains.
    A residue without N, CA or C, or with the three in a line, buries others but has no points.

    References
    ----------
    Shrake & Rupley 1973, doi:10.1016/0022-2836(73)90011-9. Krivák & Hoksza 2018, doi:10.1186/s13321-018-0285-8 (points
    on the accessible surface as the unit of prediction of ligand-binding sites).
    """
    frame, has_frame = _residue_frames(residues)
    atoms = np.flatnonzero(has_frame[residues.atom_residue])
    if len(atoms) == 0:
        return SurfacePoints(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0, np.int64), np.zeros(0))
    pos = residues.atom_pos.astype(np.float64)
    middle = pos.mean(0)  # rounding far off the origin would move the points
    pos = pos - middle
    radius = protor_radii(residues) + probe  # (A,) of the spheres on which the center of the probe rolls

    direction = DIRECTIONS @ frame[residues.atom_residue[atoms]]  # (B, 12, 3)
    gap = _gap_to_others(pos, radius, atoms, direction)  # (B, 12)
    row, column = np.nonzero(gap > 0)
    atom = atoms[row]
    normal = direction[row, column]
    return SurfacePoints(
        pos=pos[atom] + radius[atom, None] * normal + middle,
        normal=normal,
        atom=atom,
        weight=smooth_step(gap[row, column], 0.0, _RIM),
    )


def _residue_frames(residues: Residues) -> tuple[np.ndarray, np.ndarray]:
    """Return axes ``(N, 3, 3)``, rows e₁ along C − CA, e₂ toward N, e₁ × e₂; and whether they are defined, ``(N,)``."""
    n, ca, c = np.nan_to_num(residues.backbone[:, :3].astype(np.float64)).swapaxes(0, 1)
    e1 = unit(c - ca)
    to_n = unit(n - ca)
    across = to_n - (to_n * e1).sum(1, keepdims=True) * e1
    is_defined = residues.backbone_mask[:, :3].all(1) & (np.linalg.norm(across, axis=1) > _STRAIGHT)
    e2 = unit(across)
    return np.stack([e1, e2, np.cross(e1, e2)], 1), is_defined


def _gap_to_others(pos: np.ndarray, radius: np.ndarray, atoms: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Return how far the points in directions ``(B, 12, 3)`` of atoms ``(B,)`` are outside of all other spheres, Å.

    ``(B, 12)``; values are at most :data:`_RIM`, and negative inside of another sphere.
    """
    gap = np.full(direction.shape[:2], _RIM)
    tree = cKDTree(pos)
    reach = 2 * radius.max() + _RIM
    for begin in range(0, len(atoms), _BLOCK):
        block = atoms[begin : begin + _BLOCK]
        near = cKDTree(pos[block]).sparse_distance_matrix(tree, reach, output_type="coo_matrix")
        order = np.lexsort((near.col, near.row))
        row, other = near.row[order], near.col[order]
        is_other = block[row] != other
        row, other = row[is_other], other[is_other]
        atom = block[row]

        # Distance of the points of each atom to the spheres of its neighbors, and the smallest one.
        point = radius[atom, None, None] * direction[begin + row]  # (P, 12, 3) from the atom
        distance = np.linalg.norm(point - (pos[other] - pos[atom])[:, None], axis=2)
        outside = distance - radius[other, None]  # (P, 12)
        first = np.flatnonzero(np.diff(row, prepend=-1))  # of the pairs of each atom
        if len(first):
            with_neighbors = begin + row[first]
            smallest = np.minimum.reduceat(outside, first)
            gap[with_neighbors] = np.minimum(gap[with_neighbors], smallest)
    return gap


CHEMISTRY = (
    *("aliphatic", "aromatic", "nitrogen", "oxygen", "sulfur", "backbone"),
    *("donor", "acceptor", "positive", "negative", "hydrophobic"),
)
"""Properties of :func:`atom_chemistry`."""

CHEMISTRY_RANGES = (6.0, 10.0)
"""Å, ranges of :func:`point_chemistry`."""

_AROMATIC = {
    "F": ("CG", "CD1", "CD2", "CE1", "CE2", "CZ"),
    "Y": ("CG", "CD1", "CD2", "CE1", "CE2", "CZ"),
    "W": ("CG", "CD1", "CD2", "CE2", "CE3", "CZ2", "CZ3", "CH2"),
    "H": ("CG", "CD2", "CE1"),
}
_DONORS = {
    "R": ("NE", "NH1", "NH2"),
    "N": ("ND2",),
    "Q": ("NE2",),
    "H": ("ND1", "NE2"),
    "K": ("NZ",),
    "S": ("OG",),
    "T": ("OG1",),
    "Y": ("OH",),
    "W": ("NE1",),
    "C": ("SG",),
}
_ACCEPTORS = {
    "D": ("OD1", "OD2"),
    "E": ("OE1", "OE2"),
    "N": ("OD1",),
    "Q": ("OE1",),
    "H": ("ND1", "NE2"),
    "S": ("OG",),
    "T": ("OG1",),
    "Y": ("OH",),
    "M": ("SD",),
}
_POSITIVE = {"K": ("NZ",), "R": ("NH1", "NH2")}
_NEGATIVE = {"D": ("OD1", "OD2"), "E": ("OE1", "OE2")}
_HYDROPHOBIC = "AVILMFWPYC"


def atom_chemistry(residues: Residues) -> np.ndarray:
    """Return the properties :data:`CHEMISTRY` of each heavy atom.

    Parameters
    ----------
    residues : Residues

    Returns
    -------
    ndarray
        ``(A, 11)`` float64, 0 or 1; charges of groups with two atoms are 0.5 each, those of histidine 0. Donors and
        acceptors of hydrogen bonds include N and O of the backbone; hydrophobic are the carbon atoms of the side chains
        of AVILMFWPYC and their sulfur.
    """
    element, name = residues.atom_element, residues.atom_name
    is_backbone = np.isin(name, (*BACKBONE, "OXT"))
    is_carbon = element == "C"
    is_proline = residues.aatype[residues.atom_residue] == ALPHABET.index("P")
    is_aromatic = _has_name(residues, _AROMATIC)
    is_donor = _has_name(residues, _DONORS) | ((name == "N") & ~is_proline)
    is_acceptor = _has_name(residues, _ACCEPTORS) | np.isin(name, ("O", "OXT"))
    of_hydrophobic = np.isin(residues.aatype, [ALPHABET.index(letter) for letter in _HYDROPHOBIC])
    is_hydrophobic = of_hydrophobic[residues.atom_residue] & ~is_backbone & np.isin(element, ("C", "S"))
    is_lysine = residues.aatype[residues.atom_residue] == ALPHABET.index("K")
    columns = [
        is_carbon & ~is_aromatic,
        is_aromatic,
        element == "N",
        element == "O",
        element == "S",
        is_backbone,
        is_donor,
        is_acceptor,
        _has_name(residues, _POSITIVE) * np.where(is_lysine, 1.0, 0.5),
        _has_name(residues, _NEGATIVE) * 0.5,
        is_hydrophobic,
    ]
    return np.stack(columns, 1).astype(np.float64)


def _has_name(residues: Residues, names: Mapping[str, Sequence[str]]) -> np.ndarray:
    """Return True for atoms with these names in residues of these types, ``(A,)``."""
    chosen = np.zeros(len(residues.atom_name), bool)
    letter = residues.aatype[residues.atom_residue]
    for of_type, atom_names in names.items():
        chosen |= (letter == ALPHABET.index(of_type)) & np.isin(residues.atom_name, atom_names)
    return chosen


def point_chemistry(residues: Residues, pos: np.ndarray) -> np.ndarray:
    """Sum the properties of the heavy atoms around points, with weights (1 − (d / range)²)² of the distance.

    Parameters
    ----------
    residues : Residues
    pos : ndarray
        ``(M, 3)`` points, Å.

    Returns
    -------
    ndarray
        ``(M, 22)`` float64: columns :data:`CHEMISTRY` for the range 6 Å, then for 10 Å.

    References
    ----------
    Krivák & Hoksza 2018, doi:10.1186/s13321-018-0285-8: features of P2Rank's points are sums over atoms within 6 Å,
    there with weights 1 − d / 6 Å, whose slope jumps at both ends.
    """
    chemistry = atom_chemistry(residues)
    sums = [_weights(pos, residues.atom_pos, reach) @ chemistry for reach in CHEMISTRY_RANGES]
    return np.concatenate(sums, axis=1)


SHAPE = (
    *("atoms_6", "atoms_10", "atoms_15", "enclosure_10", "enclosure_15", "concavity_10", "concavity_15"),
    *("cavity_5", "cavity_8", "cavity_13", "cavity_8_relative", "cavity_13_relative", "depth", "cavity_enclosure"),
)
"""Columns of :func:`point_shape`."""

_ATOM_RANGES = (6.0, 10.0, 15.0)  # Å
_CAVITY_RANGES = (5.0, 8.0, 13.0)  # Å


def point_shape(residues: Residues, points: SurfacePoints) -> np.ndarray:
    """Compute how buried points are, and how much empty space of cavities is around them.

    Parameters
    ----------
    residues : Residues
        The protein of the points.
    points : SurfacePoints

    Returns
    -------
    ndarray
        ``(M, 14)`` float64, columns :data:`SHAPE`. Sums have weights (1 − (d / range)²)² of the distance d.

        * ``atoms_6``, ``atoms_10``, ``atoms_15``: log(1 + n), n the weighted number of heavy atoms within this range
        * ``enclosure_10``, ``enclosure_15``: 1 minus the length of the mean direction to these atoms, 0.5 on a plane
        * ``concavity_10``, ``concavity_15``: component of this mean along the normal, −1 to 1; −0.5 on a plane
        * ``cavity_5``, ``cavity_8``, ``cavity_13``: log(1 + v/Å³), v the weighted volume of alpha spheres
        * ``cavity_8_relative``, ``cavity_13_relative``: over the largest of the protein
        * ``depth`` (Å), ``cavity_enclosure``: means over the alpha spheres within 8 Å, see
          :class:`protgraph_plugins.pockets.AlphaSpheres`
    """
    columns = _burial(points, residues.atom_pos.astype(np.float64))
    spheres = alpha_spheres(residues.atom_pos)
    weights = [_weights(points.pos, spheres.center, reach) for reach in _CAVITY_RANGES]
    volumes = [np.log1p(weight @ spheres.volume) for weight in weights]
    columns += volumes
    columns += [volume / max(volume.max(initial=0.0), 1.0) for volume in volumes[1:]]
    near = weights[1]
    total = near @ spheres.volume
    columns += [(near @ (spheres.volume * value)) / (total + 1.0) for value in (spheres.depth, spheres.enclosure)]
    return np.stack(columns, axis=1)


def _burial(points: SurfacePoints, atom_pos: np.ndarray) -> list[np.ndarray]:
    """Return the columns ``atoms_6`` to ``concavity_15`` of :func:`point_shape`, ``(M,)`` each."""
    counts, enclosure, concavity = [], [], []
    for reach in _ATOM_RANGES:
        weight = _weights(points.pos, atom_pos, reach).tocoo()
        total = np.bincount(weight.row, weight.data, len(points.pos))
        counts.append(np.log1p(total))
        if reach == _ATOM_RANGES[0]:
            continue
        direction = unit(atom_pos[weight.col] - points.pos[weight.row])
        sums = [np.bincount(weight.row, weight.data * direction[:, axis], len(points.pos)) for axis in range(3)]
        mean = np.stack(sums, 1) / np.maximum(total, 1e-9)[:, None]  # (M, 3)
        enclosure.append(1 - np.linalg.norm(mean, axis=1))
        concavity.append((mean * points.normal).sum(1))
    return [*counts, *enclosure, *concavity]


def _weights(pos: np.ndarray, centers: np.ndarray, reach: float) -> csr_array:
    """Return the weights (1 − (d / reach)²)² of centers around points, ``(M, K)``."""
    shape = (len(pos), len(centers))
    if 0 in shape:
        return csr_array(shape)
    near = cKDTree(pos).sparse_distance_matrix(cKDTree(centers), reach, output_type="coo_matrix")
    weight = (1 - (near.data / reach) ** 2) ** 2
    return csr_array((weight, (near.row, near.col)), shape=shape)
