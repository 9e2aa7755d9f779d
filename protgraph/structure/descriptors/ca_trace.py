"""Descriptors of the CA trace: virtual angles κ and α, secondary structure by P-SEA, direction of the side chain.

Angles across a gap or chain end are NaN.
"""

from __future__ import annotations

import numpy as np
from biotite.structure import AtomArray, annotate_sse

from protgraph.structure.descriptors.backbone_geometry import dihedral_angle
from protgraph.structure.neighbors.search import compact_fragments
from protgraph.structure.residues.chain_breaks import chain_segments, linked_to_next
from protgraph.structure.residues.residues import Residues
from protgraph.structure.vectors import angle, unit

__all__ = ["p_sea", "sidechain_direction", "trace_angles"]

_REACH = 15.0  # Å; larger than every distance in P-SEA (13.5 between residues 4 apart in a strand)


def trace_angles(residues: Residues) -> np.ndarray:
    """Return the angle κ_i of CA_i − CA_{i−2} and CA_{i+2} − CA_i, and the dihedral α_i of CA_{i−1}, …, CA_{i+2}.

    Returns ``(N, 2)`` float64, radians: κ in [0, π], 0 for a straight trace; α in (−π, π], about 0.87 in an α-helix.
    NaN near chain ends and gaps, and for coincident atoms.

    References
    ----------
    Kabsch & Sander 1983, doi:10.1002/bip.360221211 (their virtual bond angle and dihedral).
    """
    ca = residues.pos.astype(np.float64)
    segment = chain_segments(residues)
    angles = np.full((len(ca), 2), np.nan)

    # κ of the third of each five consecutive residues
    step = ca[2:] - ca[:-2]
    kappa = angle(step[:-2], step[2:])
    is_broken = segment[:-4] != segment[4:]
    kappa[is_broken] = np.nan
    angles[2:-2, 0] = kappa

    # α of the second of each four consecutive residues
    alpha = dihedral_angle(ca[:-3], ca[1:-2], ca[2:-1], ca[3:])
    is_broken = segment[:-3] != segment[3:]
    alpha[is_broken] = np.nan
    angles[1:-2, 1] = alpha
    return angles


def sidechain_direction(residues: Residues) -> np.ndarray:
    """Return the direction of the side chain, ``(CA_i − CA_{i−1})/|…| + (CA_i − CA_{i+1})/|…|``, normalized.

    Returns ``(N, 3)`` float64; 0 at chain ends and gaps, and for three CA on a line or coincident.

    References
    ----------
    Hamelryck 2005, doi:10.1002/prot.20379 (HSEα).
    """
    ca = residues.pos.astype(np.float64)
    step = unit(np.diff(ca, axis=0))
    inward = unit(step[:-1] - step[1:])  # of all residues but the first and the last
    linked = linked_to_next(residues)
    is_inner = linked[:-2] & linked[1:-1]
    inward[~is_inner] = 0.0
    side = np.zeros((len(ca), 3))
    side[1:-1] = inward
    return side


def p_sea(residues: Residues) -> np.ndarray:
    """Return the secondary structure by distances, angles and dihedrals of the CA trace (P-SEA).

    Computed by biotite's ``annotate_sse``, which deviates slightly from the original program. Chain breaks are
    passed to it as gaps of the numbering.

    Returns ``(N,)`` int64: 0 helix, 1 strand, 2 coil.

    References
    ----------
    Labesse et al. 1997, doi:10.1093/bioinformatics/13.3.291.
    """
    n = len(residues)
    trace = AtomArray(n)
    trace.coord = compact_fragments(residues.pos, _REACH).astype(np.float32)
    trace.res_id = np.arange(n) + chain_segments(residues)  # a gap at each chain break
    trace.res_name[:] = "ALA"  # biotite ignores other residues
    trace.atom_name[:] = "CA"
    with np.errstate(invalid="ignore"):  # coincident atoms have no angles
        sse = annotate_sse(trace)
    if sse.dtype.kind == "U":
        states = np.array(["a", "b", "c"])  # biotite 1
    else:
        states = np.array([1, 2, 0])  # biotite 2
    return (sse[:, None] == states).argmax(axis=1)
