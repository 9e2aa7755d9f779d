"""Residues of protein chains among the molecules of a file, in the order of the chain."""

# Not gemmi: modified residues that follow the chain in the file stay at its end (gemmi 0.7.5, 2026-11-22).

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from protgraph.structure.residues.chain_breaks import CA_BOND, PEPTIDE_BOND, bonded_to_next
from protgraph.structure.residues.residues import CA

__all__ = ["ChainMembers", "chain_members"]

_N, _C = 0, 2  # columns of the backbone


@dataclass(frozen=True, eq=False)
class ChainMembers:
    """Selection of the candidates that are residues of a chain.

    ``member``: ``(M,)`` bool. ``order``: ``(M,)`` int64, candidates in the order of their chains. ``moved``: residues
    that are at another place than in the file.
    """

    member: np.ndarray
    order: np.ndarray
    moved: int


def chain_members(
    chain: np.ndarray,
    res_id: np.ndarray,
    backbone: np.ndarray,
    hetero: np.ndarray,
    modified: np.ndarray,
    known: np.ndarray,
) -> ChainMembers:
    """Select the residues of chains, and place modified residues and those in HETATM records where they are bonded.

    ``chain``, ``res_id``: ``(M,)`` chain id and residue number of each candidate, in file order. ``backbone``: ``(M, 4,
    3)`` N, CA, C, O, Å; NaN for missing atoms. ``hetero``: ``(M,)`` bool, True for HETATM records. ``modified``:
    ``(M,)`` bool, True for other names than those of the twenty amino acids. ``known``: ``(M,)`` bool, True for names
    of peptide-linking components; others only have atoms N, CA and C, as S-adenosylmethionine does.

    A known candidate in ATOM records is a residue. Any other one is a residue if it is bonded to another candidate of
    its chain. Without a bond, it must be before the last residue in ATOM records of its chain, and its number must be
    between those of its neighbors in the file; one that is not known needs neighbors on both sides.

    Segments are candidates in file order, each bonded to the next. A segment of HETATM records or modified residues
    only that is bonded to the end or the beginning of another one follows or precedes it, as in files that have their
    modified residues after all others. Others stay in file order.
    """
    count = len(chain)
    file_order = np.arange(count)
    may_be_moved = hetero | modified
    if not may_be_moved.any():
        return ChainMembers(np.ones(count, bool), file_order, 0)

    # known residues in ATOM records, and all that are bonded to a neighbor
    bonded = bonded_to_next(chain, backbone, backbone[:, CA])
    in_atom_records = known & ~hetero
    member = in_atom_records.copy()
    member[1:] |= bonded
    member[:-1] |= bonded

    # others before the last residue in ATOM records of their chain, with a number that fits
    names, number = np.unique(chain, return_inverse=True)
    last = np.full(len(names), -1)
    np.maximum.at(last, number[in_atom_records], np.flatnonzero(in_atom_records))
    is_before_last = file_order < last[number]
    member |= is_before_last & _fits_its_neighbors(number, res_id, known)

    # segments that are bonded to the end or the beginning of another one
    first = np.concatenate([[0], np.flatnonzero(~bonded) + 1])
    size = np.diff(first, append=count)
    is_movable = np.logical_and.reduceat(may_be_moved, first)
    if not is_movable.any():
        return ChainMembers(member, file_order, 0)
    after, before = _links(chain, res_id, backbone, first, first + size - 1, np.flatnonzero(is_movable))
    is_linked = (after >= 0) | (before >= 0)
    member |= np.repeat(is_linked, size)

    residues_of_segment = np.split(file_order, first[1:])
    order = np.concatenate([residues_of_segment[segment] for segment in _order_segments(after, before)])
    is_elsewhere = np.argsort(order) != file_order
    is_moved = np.repeat(is_movable & is_linked, size) & is_elsewhere
    return ChainMembers(member, order, int(is_moved.sum()))


def _fits_its_neighbors(chain: np.ndarray, res_id: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return True for candidates whose number is between those of their neighbors in the file, ``(M,)`` bool.

    The first and the last one of a chain have one neighbor, which is enough for known ones.
    """
    is_same_chain = chain[1:] == chain[:-1]
    ascends = res_id[1:] > res_id[:-1]
    before = known.copy()
    after = known.copy()
    before[1:] = np.where(is_same_chain, ascends, known[1:])
    after[:-1] = np.where(is_same_chain, ascends, known[:-1])
    return before & after


def _links(
    chain: np.ndarray,
    res_id: np.ndarray,
    backbone: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
    movable: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the segment that each movable one follows and the one that it precedes, ``(S,)`` int64, −1 without one."""
    after = np.full(len(first), -1)
    before = np.full(len(first), -1)
    for segment in movable.tolist():
        is_same_chain = chain[first] == chain[first[segment]]
        is_same_chain[segment] = False
        candidates = np.flatnonzero(is_same_chain)
        if len(candidates) == 0:
            continue
        head = np.full(len(candidates), first[segment])
        tail = np.full(len(candidates), last[segment])
        to_head = _bond_length(res_id, backbone, last[candidates], head)
        to_tail = _bond_length(res_id, backbone, tail, first[candidates])
        if to_head.min() < np.inf:
            after[segment] = candidates[to_head.argmin()]
        if to_tail.min() < np.inf:
            before[segment] = candidates[to_tail.argmin()]
    return after, before


def _bond_length(res_id: np.ndarray, backbone: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the length of the bond between residues, Å, ``(P,)``; infinite without one.

    If C or N is missing, CA atoms of successive numbers at most 4.3 Å apart count as bonded.
    """
    atoms = backbone.astype(np.float64)
    peptide_bond = np.linalg.norm(atoms[right, _N] - atoms[left, _C], axis=1)
    trace = np.linalg.norm(atoms[right, CA] - atoms[left, CA], axis=1)
    is_successive = np.isin(res_id[right] - res_id[left], (0, 1))
    by_trace = np.where(is_successive & (trace <= CA_BOND), trace, np.inf)
    by_bond = np.where(peptide_bond <= PEPTIDE_BOND, peptide_bond, np.inf)
    return np.where(np.isnan(peptide_bond), by_trace, by_bond)


def _order_segments(after: np.ndarray, before: np.ndarray) -> list[int]:
    """Return segments with the linked ones next to those that they are bonded to, else in file order."""
    is_linked = (after >= 0) | (before >= 0)
    waiting = np.flatnonzero(is_linked).tolist()
    order = np.flatnonzero(~is_linked).tolist()
    while waiting:
        ready = [s for s in waiting if after[s] in order or before[s] in order]
        # Without one, the rest is bonded to each other only: the first one stays in file order.
        segment = ready[0] if ready else waiting[0]
        if after[segment] in order:
            position = order.index(after[segment]) + 1
        elif before[segment] in order:
            position = order.index(before[segment])
        else:
            position = sum(s < segment for s in order)
        order.insert(position, segment)
        waiting.remove(segment)
    return order
