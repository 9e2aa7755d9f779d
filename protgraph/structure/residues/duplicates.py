"""Resolve residues that occur twice or in fragments in a file; every change is reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
from biotite.structure import AtomArray

from protgraph.structure.residues.identity import by_appearance, run_lengths
from protgraph.structure.residues.loss_report import LossReport
from protgraph.structure.residues.text_codes import pack_text

__all__ = ["Deduplicated", "resolve_duplicates"]

_DISTINCT = np.uint64(0xDD1784571E864E9D)  # with it, the atoms of an amino acid have distinct bits (found at random)
_ONE, _LAST_BITS = np.uint64(1), np.uint64(58)  # 64 - 6: a number below 64


@dataclass(frozen=True, eq=False)
class Deduplicated:
    """Atoms sorted into residues of unique identity.

    Parameters
    ----------
    rows : ndarray
        ``(A,)`` int64, atoms to keep, sorted by residue.
    residue : ndarray
        ``(A,)`` int64 from 0, ascending, residue of each atom.
    chain : ndarray
        ``(N,)`` str, chain of each residue; "A-2" for a second chain "A". The residues of a chain are consecutive.
    start : ndarray
        ``(N,)`` int64, an atom with the number and name of each residue.
    report : LossReport
        Chains renamed and atoms left out.
    """

    rows: np.ndarray
    residue: np.ndarray
    chain: np.ndarray
    start: np.ndarray
    report: LossReport


def resolve_duplicates(atoms: AtomArray, atom_name: np.ndarray, rows: np.ndarray, run: np.ndarray) -> Deduplicated:
    """Sort atoms into residues with unique chain, number and insertion code.

    Parameters
    ----------
    atoms : AtomArray
        All M atoms.
    atom_name : ndarray
        ``(M,)`` uint64, codes of their names (:func:`~protgraph.structure.residues.text_codes.pack_texts`).
    rows : ndarray
        ``(A,)`` int64, the atoms to sort, in the order of the chains.
    run : ndarray
        ``(M,)`` int64, run of equal residue identity and name of each of *all* atoms.

    Notes
    -----
    A file may use an identity twice. A residue directly after one of the same identity is a second conformation without
    an altloc id: the first is kept. Atoms without a CA belong to the earlier residue of this identity. A residue with
    another CA begins a second chain of the same id, which becomes "A-2".
    """
    each = run[rows]
    new = _run_starts(each)
    start, size = rows[new], run_lengths(new, len(rows))
    chain, name = atoms.chain_id[start], atoms.res_name[start]
    res_id, place = atoms.res_id[start], by_appearance(chain)
    target = np.arange(len(start))  # (P,) fragment that begins the residue of each fragment; -1: left out
    renamed: Counter[str] = Counter()
    is_ascending = bool((place[1:] >= place[:-1]).all())  # the order of most files
    is_unique = is_ascending and bool(((res_id[1:] > res_id[:-1]) | (place[1:] > place[:-1])).all())
    if not is_unique:
        identity = list(zip(chain.tolist(), res_id.tolist(), atoms.ins_code[start].tolist(), strict=True))
        is_unique = len(set(identity)) == len(identity)
    if not is_unique:
        has_ca = np.zeros(len(start), bool)
        has_ca[np.repeat(target, size)[atom_name[rows] == pack_text("CA")]] = True
        target, copy = _assign(identity, chain, name, has_ca)
        chain = _names_of_copies(chain, copy)
        renamed.update(chain[(copy > 1) & (target == np.arange(len(target)))].tolist())
    if is_unique and is_ascending:
        residue = target.repeat(size)
        first = _is_first(new, atom_name[rows])
        if first.all():
            return Deduplicated(rows, residue, chain, start, LossReport())
        report = LossReport(duplicate_atoms=int((~first).sum()))
        return Deduplicated(rows[first], residue[first], chain, start, report)
    heads = np.flatnonzero(target == np.arange(len(target)))
    heads = heads[np.argsort(by_appearance(chain[heads]), kind="stable")]
    rank = np.full(len(target) + 1, -1)  # the last one is for target -1
    rank[heads] = np.arange(len(heads))
    residue = np.repeat(rank[target], size)  # (A,)
    order = np.argsort(residue, kind="stable")
    order = order[np.searchsorted(residue[order], 0) :]  # without the atoms of residue -1
    order = order[_is_first(_run_starts(residue[order]), atom_name[rows[order]])]
    report = LossReport(duplicate_atoms=len(rows) - len(order), repeated_chains=dict(sorted(renamed.items())))
    return Deduplicated(rows[order], residue[order], chain[heads], start[heads], report)


def _assign(
    identity: Sequence[Hashable], chain: np.ndarray, name: np.ndarray, has_ca: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return for each fragment ``(P,)`` the fragment that begins its residue (-1: none) and the copy of its chain."""
    target, copy = np.full(len(identity), -1), np.ones(len(identity), np.int64)
    has_ca = has_ca.copy()
    latest: dict[Hashable, int] = {}  # identity → fragment that began its last residue
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
    """Return chain ids with "-2", "-3", … for further copies, distinct from all other chain ids."""
    used = set(chain.tolist())
    names: dict[tuple[str, int], str] = {}
    for c, k in zip(chain.tolist(), copy.tolist(), strict=True):
        if k > 1 and (c, k) not in names:
            number = next(n for n in count(k) if f"{c}-{n}" not in used)
            names[c, k] = f"{c}-{number}"
            used.add(names[c, k])
    return np.array([names.get((c, k), c) for c, k in zip(chain.tolist(), copy.tolist(), strict=True)])


def _run_starts(values: np.ndarray) -> np.ndarray:
    """Return the first row of each run of equal values, ``(R,)`` int64."""
    is_start = np.empty(len(values), bool)
    is_start[:1] = True
    np.not_equal(values[1:], values[:-1], out=is_start[1:])
    return is_start.nonzero()[0]


def _is_first(start: np.ndarray, name: np.ndarray) -> np.ndarray:
    """Return False for atoms preceded by one of the same residue and (code of the) name, ``(A,)`` bool.

    ``start`` ``(N,)`` are the first atoms of the residues. Each name is one of 64 bits. If a residue has as many bits
    as atoms, as the twenty amino acids do, its names differ; the names of all other residues are compared.
    """
    keep = np.ones(len(name), bool)
    if len(name) == 0:
        return keep
    size = run_lengths(start, len(name))
    bits = np.bitwise_or.reduceat(_ONE << (name * _DISTINCT >> _LAST_BITS), start)
    is_open = np.bitwise_count(bits) != size
    if is_open.any():
        rows = is_open.repeat(size).nonzero()[0]
        residue = np.arange(len(start)).repeat(size)[rows]
        order = np.lexsort((name[rows], residue))  # stable
        names, residues = name[rows[order]], residue[order]
        keep[rows[order[1:]][(names[1:] == names[:-1]) & (residues[1:] == residues[:-1])]] = False
    return keep
