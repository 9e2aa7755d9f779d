"""Residues that stand in the file twice or in pieces, put in order: nothing is merged silently."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
from biotite.structure import AtomArray

from protgraph.structure.residues.loss_report import LossReport

__all__ = ["Deduplicated", "resolve_duplicates"]

_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ divided by the golden ratio: its powers are far from each other


@dataclass(frozen=True, eq=False)
class Deduplicated:
    """Atoms sorted into residues of unique identity.

    Parameters
    ----------
    rows : ndarray
        ``(A,)`` int64, atoms to take, sorted by residue.
    residue : ndarray
        ``(A,)`` int64 from 0, ascending, residue of each.
    chain : ndarray
        ``(N,)`` str, chain of each residue; "A-2" for a second chain "A". A chain's residues stand together.
    start : ndarray
        ``(N,)`` int64, an atom with each residue's number and name.
    report : LossReport
        Chains renamed and atoms left out.
    """

    rows: np.ndarray
    residue: np.ndarray
    chain: np.ndarray
    start: np.ndarray
    report: LossReport


def resolve_duplicates(atoms: AtomArray, rows: np.ndarray, run: np.ndarray) -> Deduplicated:
    """Sort atoms into residues, each identified by chain, number and insertion code once only.

    Parameters
    ----------
    atoms : AtomArray
        All atoms.
    rows : ndarray
        ``(A,)`` int64 ascending, the atoms to sort.
    run : ndarray
        Run of equal residue identity and name that each of *all* atoms is in.

    Notes
    -----
    A file may use an identity twice. Another residue directly after its namesake is a second conformation without
    an altloc id: the first is taken. Atoms without a CA are the rest of the residue that came before. A residue
    with another CA opens a second chain of the same id, which becomes "A-2".
    """
    new = np.flatnonzero(np.diff(run[rows], prepend=-1))
    start, size = rows[new], np.diff(new, append=len(rows))
    chain, name = atoms.chain_id[start], atoms.res_name[start]
    columns = (chain.tolist(), atoms.res_id[start].tolist(), atoms.ins_code[start].tolist())
    identity = list(zip(*columns, strict=True))
    target = np.arange(len(start))  # (pieces,) the piece whose residue each belongs to; -1 to leave it out
    renamed: Counter[str] = Counter()
    if len(set(identity)) < len(identity):
        has_ca = np.zeros(len(start), bool)
        has_ca[np.repeat(target, size)[atoms.atom_name[rows] == "CA"]] = True
        target, copy = _assign(identity, chain, name, has_ca)
        chain = _names_of_copies(chain, copy)
        renamed.update(chain[(copy > 1) & (target == np.arange(len(target)))].tolist())
    heads = np.flatnonzero(target == np.arange(len(target)))
    heads = heads[np.argsort(_by_appearance(chain[heads]), kind="stable")]
    rank = np.full(len(target) + 1, -1)  # the last stays -1, for target -1
    rank[heads] = np.arange(len(heads))
    residue = np.repeat(rank[target], size)  # (A,)
    order = np.argsort(residue, kind="stable")
    order = order[np.searchsorted(residue[order], 0) :]  # without the atoms of residue -1
    order = order[_is_first(residue[order], atoms.atom_name[rows[order]])]
    report = LossReport(duplicate_atoms=len(rows) - len(order), repeated_chains=dict(sorted(renamed.items())))
    return Deduplicated(rows[order], residue[order], chain[heads], start[heads], report)


def _assign(
    identity: Sequence[Hashable], chain: np.ndarray, name: np.ndarray, has_ca: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """For each piece ``(P,)`` the piece that begins its residue (-1: none), and which copy of its chain it is in."""
    target, copy = np.full(len(identity), -1), np.ones(len(identity), np.int64)
    has_ca = has_ca.copy()
    latest: dict[Hashable, int] = {}  # identity → piece that began its last residue
    current: dict[str, int] = {}  # chain → copy that new residues belong to
    before = None
    for p, (which, c) in enumerate(zip(identity, chain.tolist(), strict=True)):
        head = latest.get(which)
        if head is None:
            target[p], copy[p], latest[which] = p, current.setdefault(c, 1), p
        elif has_ca[p] and has_ca[head] and which != before:
            target[p], copy[p], latest[which] = p, copy[head] + 1, p
            current[c] = int(copy[p])
        elif name[p] == name[head]:
            target[p], copy[p] = head, copy[head]
            has_ca[head] |= has_ca[p]
        before = which
    return target, copy


def _names_of_copies(chain: np.ndarray, copy: np.ndarray) -> np.ndarray:
    """Chain ids with "-2", "-3", … for second and third copies, none of them the id of another chain."""
    taken = set(chain.tolist())
    names: dict[tuple[str, int], str] = {}
    for c, k in zip(chain.tolist(), copy.tolist(), strict=True):
        if k > 1 and (c, k) not in names:
            number = next(n for n in count(k) if f"{c}-{n}" not in taken)
            names[c, k] = f"{c}-{number}"
            taken.add(names[c, k])
    return np.array([names.get((c, k), c) for c, k in zip(chain.tolist(), copy.tolist(), strict=True)])


def _by_appearance(chain: np.ndarray) -> np.ndarray:
    """Number of each row's chain ``(N,)``, by order of appearance."""
    names, first, inverse = np.unique(chain, return_index=True, return_inverse=True)
    rank = np.empty(len(names), np.int64)
    rank[np.argsort(first)] = np.arange(len(names))
    return rank[inverse]


def _is_first(residue: np.ndarray, name: np.ndarray) -> np.ndarray:
    """``(A,)`` bool, False where an atom before has the same residue and name.

    Equal atoms have equal sums, modulo 2⁶⁴, of the residue's number and the name's characters with weights. Where all
    sums differ, as they do in most files, all is said; sorting names takes five times as long.
    """
    characters = np.ascontiguousarray(name).view(np.uint32).reshape(len(name), name.itemsize // 4)  # (A, w)
    weights = _ODD ** np.arange(1, characters.shape[1] + 1, dtype=np.uint64)
    sums = np.sort(residue.astype(np.uint64) + characters @ weights)
    if (sums[1:] != sums[:-1]).all():
        return np.ones(len(name), bool)
    names, code = np.unique(name, return_inverse=True)
    first = np.unique(residue * len(names) + code, return_index=True)[1]
    keep = np.zeros(len(name), bool)
    keep[first] = True
    return keep
