"""What the CA trace alone tells: virtual angles κ and α, secondary structure by P-SEA, which side the side chain is on.

All of it is there for CA traces too. Angles that span a gap or a chain end are NaN.
"""

from __future__ import annotations

import numpy as np
from biotite.structure import AtomArray, annotate_sse

from protgraph.structure.descriptors.backbone_geometry import dihedral_angle
from protgraph.structure.neighbors.compact_fragments import compact_fragments
from protgraph.structure.residues.chain_breaks import linked_to_next
from protgraph.structure.residues.residues import Residues
from protgraph.structure.vectors import unit

__all__ = ["p_sea", "trace_angles", "sidechain_direction"]

_REACH = 15.0  # Å; farther than any distance that P-SEA asks for (13.5 of residues 4 apart in a strand)


def trace_angles(residues: Residues) -> np.ndarray:
    """κ_i, between CA_i − CA_{i−2} and CA_{i+2} − CA_i, and α_i, the dihedral of CA_{i−1}, CA_i, CA_{i+1}, CA_{i+2}.

    Parameters
    ----------
    residues : Residues

    Returns
    -------
    ndarray
        ``(N, 2)`` float64, radians: κ in [0, π], 0 where the trace is straight; α in (−π, π], some 0.87 in an α-helix.
        NaN where the chain does not go on so far, or where atoms coincide.

    References
    ----------
    Kabsch & Sander 1983, doi:10.1002/bip.360221211 (their virtual bond angle and dihedral).
    """
    ca, piece = residues.pos.astype(np.float64), _pieces(residues)
    angles = np.full((len(ca), 2), np.nan)
    back, forth = ca[2:-2] - ca[:-4], ca[4:] - ca[2:-2]
    with np.errstate(invalid="ignore"):
        turn = np.arctan2(np.linalg.norm(np.cross(back, forth), axis=1), (back * forth).sum(1))
    apart = (back**2).sum(1) * (forth**2).sum(1) > 0
    angles[2:-2, 0] = np.where(apart & (piece[:-4] == piece[4:]), turn, np.nan)
    dihedral = dihedral_angle(ca[:-3], ca[1:-2], ca[2:-1], ca[3:])
    angles[1:-2, 1] = np.where(piece[:-3] == piece[3:], dihedral, np.nan)
    return angles


def sidechain_direction(residues: Residues) -> np.ndarray:
    """Unit vector along ``(CA_i − CA_{i−1})/|…| + (CA_i − CA_{i+1})/|…|``, to the side where the side chain is.

    Parameters
    ----------
    residues : Residues

    Returns
    -------
    ndarray
        ``(N, 3)`` float64; 0 at chain ends and gaps, and where the three CA lie in a line or coincide.

    References
    ----------
    Hamelryck 2005, doi:10.1002/prot.20379 (HSEα).
    """
    ca, linked = residues.pos.astype(np.float64), linked_to_next(residues)
    side = np.zeros((len(ca), 3))
    step = unit(np.diff(ca, axis=0))
    inner = linked[:-2] & linked[1:-1]
    side[1:-1] = unit((step[:-1] - step[1:]) * inner[:, None])
    return side


def p_sea(residues: Residues) -> np.ndarray:
    """Secondary structure by distances, angles and dihedrals of the CA trace.

    Parameters
    ----------
    residues : Residues

    Returns
    -------
    ndarray
        ``(N,)`` int64: 0 helix, 1 strand, 2 coil.

    Notes
    -----
    By biotite's ``annotate_sse``, which has small deviations from the original program; chains and gaps are told to it
    by the numbering.

    References
    ----------
    Labesse et al. 1997, doi:10.1093/bioinformatics/13.3.291.
    """
    n = len(residues)
    trace = AtomArray(n)
    trace.coord = compact_fragments(residues.pos, _REACH).astype(np.float32)
    trace.res_id = np.arange(n) + _pieces(residues)  # a gap where the chain is broken
    trace.res_name[:] = "ALA"  # every residue counts, whatever its name
    trace.atom_name[:] = "CA"
    with np.errstate(invalid="ignore"):  # coincident atoms have no angles
        found = annotate_sse(trace)
    elements = ("a", "b", "c") if found.dtype.kind == "U" else (1, 2, 0)  # of biotite 1; of biotite 2
    return (found[:, None] == np.array(elements)).argmax(1)


def _pieces(residues: Residues) -> np.ndarray:
    """``(N,)`` int64, number of the unbroken piece of chain that a residue is in."""
    return np.concatenate([[0], np.cumsum(~linked_to_next(residues))])[: len(residues)]
