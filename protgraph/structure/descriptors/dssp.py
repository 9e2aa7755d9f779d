"""Secondary structure by hydrogen bonds: turns, bridges, ladders, helices and bends of Kabsch & Sander's dictionary."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from protgraph.structure.chemistry.dssp_hbond import BackboneHBonds, backbone_hbonds
from protgraph.structure.residues.chain_breaks import linked_to_next
from protgraph.structure.residues.residues import Residues
from protgraph.structure.vectors import unit

__all__ = ["DSSP_STATES", "dssp", "three_states"]

DSSP_STATES = "HBEGITSC"
"""α-helix, lone bridge, strand, 3₁₀-helix, π-helix, turn, bend, none of these."""

_BEND = 70.0  # degrees (Kabsch & Sander 1983, section "Bends")
_HELICES = (("H", 4), ("G", 3), ("I", 5))


def dssp(residues: Residues, *, prefer_pi: bool = True) -> np.ndarray:
    """The state of each residue, one of :data:`DSSP_STATES`, "-" where an atom of N, CA, C, O is missing.

    Parameters
    ----------
    residues : Residues
        All chains together: strands of different chains pair.
    prefer_pi : bool
        True: a π-helix takes residues from an α-helix, as the program does since 2012 (version 2.1); False: α first, as
        published in 1983.

    Returns
    -------
    ndarray
        ``(N,)`` str of one letter.

    Notes
    -----
    A residue with a missing backbone atom is as if it were not there: the chain breaks. It breaks too where C and N
    are more than 2.5 Å apart. CA traces have no state at all.

    References
    ----------
    Kabsch & Sander 1983, doi:10.1002/bip.360221211; π before α and whatever the paper leaves open (which ladders merge
    first; all residues from end to end of a ladder are strand; two bonds a donor) as in DSSP 4 (Hekkelman et al. 2025,
    doi:10.1002/pro.70208). Its polyproline helices (P) are no hydrogen-bonded structure and are left out.

    Examples
    --------
    >>> "".join(dssp(clean(load_structure("1l2y.cif"))))  # doctest: +SKIP
    'CHHHHHHHHTTGGGGTCCCC'
    """
    whole = residues.backbone_mask.all(1)
    states = np.full(len(residues), "-")
    if whole.any():
        states[whole] = _states(residues if whole.all() else residues.select(whole), prefer_pi)
    return states


def three_states(states: np.ndarray) -> np.ndarray:
    """Helix "H" for H, G and I, strand "E" for E and B, coil "C" for T, S and C; "-" stays.

    Examples
    --------
    >>> "".join(three_states(np.array(list("HBEGITSC-"))))
    'HEEHHCCC-'
    """
    three = np.full(states.shape, "C")
    for letter, those in (("H", "HGI"), ("E", "EB"), ("-", "-")):
        three[np.isin(states, list(those))] = letter
    return three


def _states(residues: Residues, prefer_pi: bool) -> np.ndarray:
    """``(N,)`` letters of residues that all have their backbone."""
    n = len(residues)
    breaks = np.concatenate([[0], np.cumsum(~linked_to_next(residues))])[:n]  # equal within a piece of chain
    bonds = backbone_hbonds(residues)
    states = np.full(n, "C")
    for first, last, strand in _ladders(bonds, breaks):
        part = states[first : last + 1]
        part[part != "E"] = "E" if strand else "B"
    starts = {stride: _turn_starts(bonds, breaks, stride) for _, stride in _HELICES}
    for letter, stride in _HELICES:
        free = {"H": "CBE", "G": "C", "I": "CH" if prefer_pi else "C"}[letter]
        states[_helix(starts[stride], np.isin(states, list(free)), stride)] = letter
    turn = np.any([_covered(starts[stride], 1, stride) for _, stride in _HELICES], axis=0)
    states[(states == "C") & turn] = "T"
    states[(states == "C") & _bends(residues.pos, breaks)] = "S"
    return states


def _turn_starts(bonds: BackboneHBonds, breaks: np.ndarray, stride: int) -> np.ndarray:
    """``(N,)`` bool, residues i whose C=O is bonded to the N–H of i + ``stride`` of the same piece of chain."""
    i = bonds.acceptor[bonds.donor - bonds.acceptor == stride]
    starts = np.zeros(len(breaks), bool)
    starts[i[breaks[i] == breaks[i + stride]]] = True
    return starts


def _covered(starts: np.ndarray, first: int, end: int) -> np.ndarray:
    """``(N,)`` bool, residues at i + ``first`` to i + ``end`` − 1 of any start i."""
    covered = np.zeros(len(starts), bool)
    for k in range(first, min(end, len(starts))):
        covered[k:] |= starts[: len(starts) - k]
    return covered


def _helix(starts: np.ndarray, free: np.ndarray, stride: int) -> np.ndarray:
    """``(N,)`` bool: residues i to i + ``stride`` − 1 of turns both at i − 1 and at i, if all of these are free."""
    both = starts.copy()
    both[1:] &= starts[:-1]
    both[:1] = False
    blocked = np.concatenate([[0], np.cumsum(~free)])
    i = np.flatnonzero(both)
    both[i] = blocked[i + stride] == blocked[i]
    return _covered(both, 0, stride)


def _bends(pos: np.ndarray, breaks: np.ndarray) -> np.ndarray:
    """``(N,)`` bool: the angle between CA_i − CA_{i−2} and CA_{i+2} − CA_i is above 70°."""
    bend = np.zeros(len(pos), bool)
    two = unit(pos[2:].astype(np.float64) - pos[:-2])  # (N - 2, 3)
    cosine = (two[:-2] * two[2:]).sum(1)
    bend[2:-2] = (cosine < np.cos(np.radians(_BEND))) & (breaks[:-4] == breaks[4:])
    return bend


def _ladders(bonds: BackboneHBonds, breaks: np.ndarray) -> list[tuple[int, int, bool]]:
    """Stretches (first, last residue, whether it is a strand and no lone bridge) of both sides of every ladder."""
    found = []
    for antiparallel in (False, True):
        merged = _join_bulges(_runs(_bridges(bonds, breaks, antiparallel), antiparallel), antiparallel, breaks)
        for i_first, i_last, j_first, j_last, size in merged:
            found += [(i_first, i_last, size > 1), (j_first, j_last, size > 1)]
    return found


def _bridges(bonds: BackboneHBonds, breaks: np.ndarray, antiparallel: bool) -> np.ndarray:
    """``(2, M)`` bridge partners i < j, at least 3 apart, with a neighbor in the chain on either side of both."""
    d, a, n = bonds.donor, bonds.acceptor, len(breaks)
    parallel = _pairs(d - 1, a, n, _bonded(bonds, a, d - 2, n))
    if antiparallel:
        mutual = _pairs(d, a, n, _bonded(bonds, a, d, n))
        around = _pairs(d - 1, a + 1, n, _bonded(bonds, a + 2, d - 2, n))
        code = np.setdiff1d(np.union1d(mutual, around), parallel)  # a pair that is both counts as parallel
    else:
        code = np.unique(parallel)
    i, j = np.divmod(code, n)
    inner = (i >= 1) & (j <= n - 2) & (j - i >= 3)
    i, j = i[inner], j[inner]
    chained = (breaks[i - 1] == breaks[i + 1]) & (breaks[j - 1] == breaks[j + 1])
    return np.stack([i[chained], j[chained]])


def _pairs(i: np.ndarray, j: np.ndarray, n: int, there: np.ndarray) -> np.ndarray:
    """Codes ``min · n + max`` of the pairs that are there."""
    return (np.minimum(i, j) * n + np.maximum(i, j))[there & (i >= 0) & (j < n)]


def _bonded(bonds: BackboneHBonds, donor: np.ndarray, acceptor: np.ndarray, n: int) -> np.ndarray:
    """Whether there is a bond from each donor to its acceptor; False for residues that are not there."""
    there = (donor >= 0) & (donor < n) & (acceptor >= 0) & (acceptor < n)
    return there & np.isin(donor * n + acceptor, bonds.donor * n + bonds.acceptor)


def _runs(bridges: np.ndarray, antiparallel: bool) -> list[tuple[int, int, int, int, int]]:
    """Ladders: bridges (i, j), (i + 1, j ± 1), … in a row, as (first i, last i, least j, greatest j, bridges)."""
    i, j = bridges
    diagonal = i + j if antiparallel else j - i
    order = np.lexsort((i, diagonal))
    i, j, diagonal = i[order], j[order], diagonal[order]
    new = np.flatnonzero((np.diff(i) != 1) | (np.diff(diagonal) != 0)) + 1
    bounds = np.concatenate([[0], new, [len(i)]])
    runs = []
    for start, end in pairwise(bounds.tolist() if len(i) else ()):
        ends = sorted((int(j[start]), int(j[end - 1])))
        runs.append((int(i[start]), int(i[end - 1]), *ends, end - start))
    return sorted(runs)


def _join_bulges(
    runs: list[tuple[int, int, int, int, int]], antiparallel: bool, breaks: np.ndarray
) -> list[tuple[int, int, int, int, int]]:
    """Ladders linked across a bulge, at most one extra residue on one strand and four on the other, become one."""
    runs, here = list(runs), 0
    while here < len(runs):
        other = here + 1
        while other < len(runs):
            i0, i1, j0, j1, size = runs[here]
            k0, k1, l0, l1, more = runs[other]
            if k0 - i1 > 5:
                break  # they are sorted: all further ones are as far
            step = j0 - l1 if antiparallel else l0 - j1
            near = 0 <= step <= 2 or (0 <= step <= 5 and k0 - i1 <= 2)
            whole = breaks[i0] == breaks[max(i1, k1)] and breaks[min(j0, l0)] == breaks[max(j1, l1)]
            if k0 > i1 and near and whole:
                runs[here] = (i0, k1, min(j0, l0), max(j1, l1), size + more)
                del runs[other]
            else:
                other += 1
        here += 1
    return runs
