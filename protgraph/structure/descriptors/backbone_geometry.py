"""Backbone dihedral angles, the virtual CB, and one point per residue, in float64; NaN for missing atoms."""

# Not biotite's dihedral_backbone: it returns angles across chain breaks and ends (biotite 1.6.0, 2026-11-22).

from __future__ import annotations

import numpy as np

from protgraph.structure.residues.chain_breaks import linked_to_next
from protgraph.structure.residues.residues import BACKBONE, Residues
from protgraph.structure.vectors import cross, length

__all__ = [
    "CB_C",
    "CB_CROSS",
    "CB_N",
    "backbone_dihedrals",
    "beta_carbon",
    "cb_or_ca",
    "dihedral_angle",
    "sidechain_centroid",
    "virtual_cb",
]

#: Coefficients of b × c, b and c of the virtual CB: ideal bond lengths and angles at CA; see :func:`virtual_cb`.
CB_CROSS, CB_N, CB_C = -0.58273431, 0.56802827, -0.54067466

_STRAIGHT = 1e-4  # smaller sines are rounding errors of float32 coordinates: three atoms on a line


def dihedral_angle(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Return the angle of the planes (a, b, c) and (b, c, d), ``atan2((n1 × n2)·b̂2, n1·n2)`` with ``n1 = b1 × b2``.

    ``a``, ``b``, ``c``, ``d``: ``(…, 3)`` positions, Å. Returns ``(…)`` float64 in (−π, π], radians: 0 for cis,
    positive if, viewed along b → c, the far bond is rotated clockwise. NaN if an atom is missing or three consecutive
    atoms are on a line.

    References
    ----------
    IUPAC-IUB Commission 1970, doi:10.1021/bi00820a001, rule 1 (sign).

    Examples
    --------
    >>> dihedral_angle(*np.array([[1.0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 1, 1]])).round(4).item()
    1.5708
    """
    b1 = np.asarray(b, np.float64) - a
    b2 = np.asarray(c, np.float64) - b
    b3 = np.asarray(d, np.float64) - c
    n1 = cross(b1, b2)
    n2 = cross(b2, b3)

    # Three atoms on a line have no plane: |u × v| is the sine of their angle times both lengths.
    l2 = length(b2)
    has_first_plane = length(n1) > _STRAIGHT * length(b1) * l2
    has_second_plane = length(n2) > _STRAIGHT * l2 * length(b3)

    # (n1 × n2)·b2 = |b2|² (b1·n2) saves a cross product.
    y = l2 * np.einsum("...i,...i->...", b1, n2)
    x = np.einsum("...i,...i->...", n1, n2)
    angle = np.arctan2(y, x)
    return np.where(has_first_plane & has_second_plane, angle, np.nan)


def backbone_dihedrals(residues: Residues) -> np.ndarray:
    """Return the dihedral angles φ, ψ, ω of each residue: about N–CA, CA–C and C–N of the next residue.

    Returns ``(N, 3)`` float64, radians. NaN if an atom is missing, for φ after a chain end or gap, and for ψ and ω
    before one.

    References
    ----------
    IUPAC-IUB Commission 1970, doi:10.1021/bi00820a001, rule 3.2.1.
    """
    n_ca_c = residues.backbone[:, :3]
    atoms = n_ca_c.reshape(-1, 3).astype(np.float64)  # (3N, 3): N, CA, C, N, …
    dihedrals = _consecutive_dihedrals(atoms)
    of_link = dihedrals.reshape(-1, 3)  # (N - 1, 3): ψ, ω, and φ of the next residue
    is_linked = linked_to_next(residues)[:-1]
    of_link[~is_linked] = np.nan

    angles = np.full((len(residues), 3), np.nan)  # φ, ψ, ω
    angles[:-1, 1:] = of_link[:, :2]
    angles[1:, 0] = of_link[:, 2]
    return angles


def _consecutive_dihedrals(atoms: np.ndarray) -> np.ndarray:
    """Return :func:`dihedral_angle` of each four consecutive atoms, ``(M, 3)`` float64 to ``(M − 3,)``.

    Bonds, their lengths and the normals of their planes are computed once, in half the time.
    """
    axes = np.ascontiguousarray(atoms.T)  # (3, M)
    bond = axes[:, 1:] - axes[:, :-1]  # (3, M - 1)
    normal = _cross(bond[:, :-1], bond[:, 1:])  # (3, M - 2)

    bond_length = np.sqrt(_dot(bond, bond))
    normal_length = np.sqrt(_dot(normal, normal))
    is_bent = normal_length > _STRAIGHT * bond_length[:-1] * bond_length[1:]  # the three atoms have a plane

    # As in dihedral_angle, with b1, b2, n1 and n2 of each four atoms.
    b1 = bond[:, :-2]
    l2 = bond_length[1:-1]
    n1 = normal[:, :-1]
    n2 = normal[:, 1:]
    y = l2 * _dot(b1, n2)
    x = _dot(n1, n2)
    angles = np.arctan2(y, x)
    has_planes = is_bent[:-1] & is_bent[1:]
    angles[~has_planes] = np.nan
    return angles


def _cross(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the products ``u × v`` of vectors in columns, ``(3, M)`` each to ``(3, M)``."""
    product = np.empty_like(u)
    product[0] = u[1] * v[2] - u[2] * v[1]
    product[1] = u[2] * v[0] - u[0] * v[2]
    product[2] = u[0] * v[1] - u[1] * v[0]
    return product


def _dot(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the products ``u·v`` of vectors in columns, ``(3, M)`` each to ``(M,)``."""
    return u[0] * v[0] + u[1] * v[1] + u[2] * v[2]


def virtual_cb(backbone: np.ndarray) -> np.ndarray:
    """Return the CB of ideal backbone geometry: ``-0.58273431 a + 0.56802827 b - 0.54067466 c + CA``.

    Here ``b = CA - N``, ``c = C - CA`` and ``a = b × c``.

    ``backbone``: ``(N, ≥ 3, 3)`` positions of N, CA, C, Å. Returns ``(N, 3)`` float64, Å; NaN if N, CA or C is missing.

    References
    ----------
    Dauparas et al. 2022, doi:10.1126/science.add2187, supplement (constants of their program, taken
    from trRosetta: Yang et al. 2020, doi:10.1073/pnas.1914677117).
    """
    positions = backbone.astype(np.float64)
    ca = positions[:, 1]
    b = ca - positions[:, 0]
    c = positions[:, 2] - ca
    a = cross(b, c)
    return CB_CROSS * a + CB_N * b + CB_C * c + ca


# --- one point per residue: CB or the center of the side chain -------------------------------------------------------


_NO_SIDECHAIN = (*BACKBONE, "OXT")


def cb_or_ca(residues: Residues) -> np.ndarray:
    """Return CB of the file, else that of :func:`virtual_cb`, else (without N or C) CA, ``(N, 3)`` float64, Å."""
    point = beta_carbon(residues)
    return np.where(np.isnan(point), residues.pos, point)


def beta_carbon(residues: Residues) -> np.ndarray:
    """Return CB of the file, else the virtual CB, else NaN, ``(N, 3)`` float64, Å."""
    point = virtual_cb(residues.backbone)
    atoms = np.flatnonzero(residues.atom_name == "CB")[::-1]  # backwards, so that the first is written last
    point[residues.atom_residue[atoms]] = residues.atom_pos[atoms]
    return point


def sidechain_centroid(residues: Residues) -> np.ndarray:
    """Return the mean of the side-chain heavy atoms of each residue, or CA without any, ``(N, 3)`` float64, Å."""
    atoms = np.flatnonzero(~np.isin(residues.atom_name, _NO_SIDECHAIN))
    owner, n = residues.atom_residue[atoms], len(residues)
    center = residues.pos.astype(np.float64)  # sums relative to CA avoid rounding far from the origin
    offset = residues.atom_pos[atoms].astype(np.float64) - center[owner]
    total = np.stack([np.bincount(owner, offset[:, axis], n) for axis in range(3)], 1)
    return center + total / np.maximum(np.bincount(owner, minlength=n), 1)[:, None]
