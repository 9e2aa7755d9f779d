"""Secondary structure by hydrogen bonds: the eight states of DSSP (Kabsch & Sander 1983).

Agreement with mkdssp 4.2.2: 99.94 % of residues.
"""

# Not biotite's DsspApp: runs mkdssp. Not pydssp: three states, ignores chain breaks (pydssp 0.9.1, 2026-11-22).

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from protgraph.structure.chemistry.dssp_hbond import BackboneHBonds, backbone_hbonds
from protgraph.structure.residues.chain_breaks import chain_segments
from protgraph.structure.residues.residues import Residues
from protgraph.structure.vectors import unit

__all__ = ["DSSP_STATES", "dssp", "three_states"]

DSSP_STATES = "HBEGITSC"
"""α-helix, isolated bridge, strand, 3₁₀-helix, π-helix, turn, bend, coil."""

_BEND = 70.0  # degrees (Kabsch & Sander 1983, section "Bends")
_HELICES = (("H", 4), ("G", 3), ("I", 5))


def dssp(residues: Residues, *, prefer_pi: bool = True) -> np.ndarray:
    """Return the state of each residue, one of :data:`DSSP_STATES`, or "-" if N, CA, C or O is missing.

    The chain breaks at residues with a missing backbone atom, and if C and N are more than 2.5 Å apart. CA traces have
    no states.

    ``residues``: all chains; strands of different chains can pair. ``prefer_pi``: True: π-helices take precedence over
    α-helices, as in the program since 2012 (version 2.1). False: α-helices take precedence, as published in 1983.
    Returns ``(N,)`` one-letter str.

    References
    ----------
    Kabsch & Sander 1983, doi:10.1002/bip.360221211; precedence of π over α and what the paper leaves open (order of
    merging ladders; all residues between the ends of a ladder are strand; two bonds per donor) as in DSSP 4 (Hekkelman
    et al. 2025, doi:10.1002/pro.70208). Its polyproline helices (P) are not hydrogen-bonded and are left out.

    Examples
    --------
    >>> from protgraph.structure import clean, load_structure
    >>> "".join(dssp(clean(load_structure("datasets/pdb_core/structures/1crn.bcif"))))
    'CEECSSHHHHHHHHHHHTTTCCHHHHHHHHSCEECSSSCCCGGGCC'
    """
    is_complete = np.asarray(residues.backbone_mask.all(1))
    states = np.full(len(residues), "-")
    if not is_complete.any():
        return states
    complete = residues
    if not is_complete.all():
        complete = residues.select(is_complete)
    states[is_complete] = _states(complete, prefer_pi)
    return states


def three_states(states: np.ndarray) -> np.ndarray:
    """Reduce to three states: helix "H" (H, G, I), strand "E" (E, B), coil "C" (T, S, C); "-" is kept.

    ``states`` are letters ``(N,)``, and the result has the same shape.

    Examples
    --------
    >>> "".join(three_states(np.array(list("HBEGITSC-"))))
    'HEEHHCCC-'
    """
    three = np.full(states.shape, "C")
    for letter, members in (("H", "HGI"), ("E", "EB"), ("-", "-")):
        three[np.isin(states, list(members))] = letter
    return three


def _states(residues: Residues, prefer_pi: bool) -> np.ndarray:
    """Return the states ``(N,)`` of residues with complete backbones."""
    segment = chain_segments(residues)
    bonds = backbone_hbonds(residues)
    states = np.full(len(residues), "C")

    # strands and bridges; a strand stays one where it also is in a bridge
    for side in _ladder_sides(bonds, segment):
        side_states = states[side.first : side.last + 1]
        side_states[side_states != "E"] = "E" if side.is_strand else "B"

    # helices, each over the states that it may replace
    replaceable = {"H": "CBE", "G": "C", "I": "C"}
    if prefer_pi:
        replaceable["I"] = "CH"
    is_turn = np.zeros(len(residues), bool)
    for letter, stride in _HELICES:
        starts = _turn_starts(bonds, segment, stride)
        is_free = np.isin(states, list(replaceable[letter]))
        states[_helix(starts, is_free, stride)] = letter
        is_turn |= _covered(starts, 1, stride)

    # what is left: turns, then bends
    states[(states == "C") & is_turn] = "T"
    is_bend = _bends(residues.pos, segment)
    states[(states == "C") & is_bend] = "S"
    return states


def _turn_starts(bonds: BackboneHBonds, segment: np.ndarray, stride: int) -> np.ndarray:
    """Return True for residues i with C=O bonded to the N–H of i + ``stride`` in one segment, ``(N,)`` bool."""
    has_stride = bonds.donor - bonds.acceptor == stride
    first = bonds.acceptor[has_stride]
    is_one_segment = segment[first] == segment[first + stride]
    starts = np.zeros(len(segment), bool)
    starts[first[is_one_segment]] = True
    return starts


def _covered(starts: np.ndarray, first: int, end: int) -> np.ndarray:
    """Return True for residues i + ``first`` to i + ``end`` − 1 of any start i, ``(N,)`` bool."""
    covered = np.zeros(len(starts), bool)
    for k in range(first, min(end, len(starts))):
        covered[k:] |= starts[: len(starts) - k]
    return covered


def _helix(starts: np.ndarray, free: np.ndarray, stride: int) -> np.ndarray:
    """Return True for residues i to i + ``stride`` − 1 with turns at i − 1 and i, if all are free, ``(N,)`` bool."""
    both = starts.copy()
    both[1:] &= starts[:-1]
    both[:1] = False
    blocked = np.concatenate([[0], np.cumsum(~free)])
    i = np.flatnonzero(both)
    both[i] = blocked[i + stride] == blocked[i]
    return _covered(both, 0, stride)


def _bends(pos: np.ndarray, segment: np.ndarray) -> np.ndarray:
    """Return True for an angle of CA_i − CA_{i−2} and CA_{i+2} − CA_i above 70°, ``(N,)`` bool."""
    bend = np.zeros(len(pos), bool)
    two = unit(pos[2:].astype(np.float64) - pos[:-2])  # (N - 2, 3), over two residues
    cosine = (two[:-2] * two[2:]).sum(1)
    is_sharp = cosine < np.cos(np.radians(_BEND))
    is_one_segment = segment[:-4] == segment[4:]
    bend[2:-2] = is_sharp & is_one_segment
    return bend


class _Ladder(NamedTuple):
    """Consecutive bridges: first and last residue of each side, and the number of bridges."""

    i_first: int
    i_last: int
    j_first: int
    j_last: int
    bridges: int


class _LadderSide(NamedTuple):
    """Residues of one side of a ladder, which is a strand or an isolated bridge."""

    first: int
    last: int
    is_strand: bool


def _ladder_sides(bonds: BackboneHBonds, segment: np.ndarray) -> list[_LadderSide]:
    sides = []
    for antiparallel in (False, True):
        bridges = _bridges(bonds, segment, antiparallel)
        ladders = _runs(bridges, antiparallel)
        for ladder in _join_bulges(ladders, antiparallel, segment):
            is_strand = ladder.bridges > 1
            sides.append(_LadderSide(ladder.i_first, ladder.i_last, is_strand))
            sides.append(_LadderSide(ladder.j_first, ladder.j_last, is_strand))
    return sides


def _bridges(bonds: BackboneHBonds, segment: np.ndarray, antiparallel: bool) -> np.ndarray:
    """Return bridge partners i < j, at least 3 apart, each with chain neighbors on both sides, ``(2, M)``."""
    d = bonds.donor
    a = bonds.acceptor
    n = len(segment)

    # the patterns of two bonds, each bond with the one that completes it (Kabsch & Sander 1983)
    parallel = _pairs(d - 1, a, n, _bonded(bonds, a, d - 2, n))
    if antiparallel:
        mutual = _pairs(d, a, n, _bonded(bonds, a, d, n))
        around = _pairs(d - 1, a + 1, n, _bonded(bonds, a + 2, d - 2, n))
        of_either_pattern = np.union1d(mutual, around)
        code = np.setdiff1d(of_either_pattern, parallel)  # a pair of both kinds is parallel
    else:
        code = np.unique(parallel)
    i, j = np.divmod(code, n)

    # both partners have neighbors, in the same segment, and are not close in the chain
    is_inner = (i >= 1) & (j <= n - 2)
    is_apart = j - i >= 3
    i = i[is_inner & is_apart]
    j = j[is_inner & is_apart]
    i_is_chained = segment[i - 1] == segment[i + 1]
    j_is_chained = segment[j - 1] == segment[j + 1]
    bridges = np.stack([i, j])
    return bridges[:, i_is_chained & j_is_chained]


def _pairs(i: np.ndarray, j: np.ndarray, n: int, is_present: np.ndarray) -> np.ndarray:
    """Return codes ``min · n + max`` of the present pairs."""
    code = np.minimum(i, j) * n + np.maximum(i, j)
    is_in_range = (i >= 0) & (j < n)
    return code[is_present & is_in_range]


def _bonded(bonds: BackboneHBonds, donor: np.ndarray, acceptor: np.ndarray, n: int) -> np.ndarray:
    """Return True for pairs with a bond from donor to acceptor; False for indices out of range."""
    donor_is_valid = (donor >= 0) & (donor < n)
    acceptor_is_valid = (acceptor >= 0) & (acceptor < n)
    code = donor * n + acceptor
    code_of_bonds = bonds.donor * n + bonds.acceptor
    return donor_is_valid & acceptor_is_valid & np.isin(code, code_of_bonds)


def _runs(bridges: np.ndarray, antiparallel: bool) -> list[_Ladder]:
    """Return runs of bridges (i, j), (i + 1, j ± 1), …, sorted by first i."""
    i, j = bridges
    if not len(i):
        return []
    diagonal = i + j if antiparallel else j - i
    order = np.lexsort((i, diagonal))
    i = i[order]
    j = j[order]
    diagonal = diagonal[order]

    # a run ends where i is not the next one, or on another diagonal
    is_new = (np.diff(i) != 1) | (np.diff(diagonal) != 0)
    starts = np.flatnonzero(is_new) + 1
    bounds = [0, *starts.tolist(), len(i)]
    runs = []
    for start, end in pairwise(bounds):
        j_first, j_last = sorted((int(j[start]), int(j[end - 1])))
        ladder = _Ladder(int(i[start]), int(i[end - 1]), j_first, j_last, bridges=end - start)
        runs.append(ladder)
    return sorted(runs)


def _join_bulges(runs: Sequence[_Ladder], antiparallel: bool, segment: np.ndarray) -> list[_Ladder]:
    """Merge ladders across a bulge of at most one residue on one strand and four on the other."""
    ladders = list(runs)
    current = 0
    while current < len(ladders):
        following = current + 1
        while following < len(ladders):
            ladder = ladders[current]
            candidate = ladders[following]
            if candidate.i_first - ladder.i_last > 5:
                break  # runs are sorted: all that follow are as far
            if _are_joined(ladder, candidate, antiparallel, segment):
                ladders[current] = _merged(ladder, candidate)
                del ladders[following]
            else:
                following += 1
        current += 1
    return ladders


def _are_joined(first: _Ladder, second: _Ladder, antiparallel: bool, segment: np.ndarray) -> bool:
    """Return True if only a bulge is between two ladders, in one segment on each side."""
    i_step = second.i_first - first.i_last
    if i_step <= 0:
        return False
    j_step = first.j_first - second.j_last if antiparallel else second.j_first - first.j_last
    is_near = 0 <= j_step <= 2 or (0 <= j_step <= 5 and i_step <= 2)
    if not is_near:
        return False
    both = _merged(first, second)
    i_end = max(first.i_last, second.i_last)
    return bool(segment[both.i_first] == segment[i_end] and segment[both.j_first] == segment[both.j_last])


def _merged(first: _Ladder, second: _Ladder) -> _Ladder:
    """Return the ladder from the first bridge of one to the last bridge of another."""
    j_first = min(first.j_first, second.j_first)
    j_last = max(first.j_last, second.j_last)
    return _Ladder(first.i_first, second.i_last, j_first, j_last, first.bridges + second.bridges)
