"""Resolve residues that occur twice or in fragments in a file; every change is reported."""

# Not gemmi: it joins chains of one id, and neighbors of one number and name (gemmi 0.7.5, 2026-11-26).

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence, Set
from dataclasses import dataclass
from string import ascii_uppercase
from typing import NamedTuple

import numpy as np
from biotite.structure import AtomArray

from protgraph.errors import StructureFileError, list_first
from protgraph.structure.residues.chain_breaks import CA_BOND, bonded_to_next
from protgraph.structure.residues.identity import by_appearance, run_lengths
from protgraph.structure.residues.loss_report import LossReport
from protgraph.structure.residues.residues import CA
from protgraph.structure.residues.runs import LEAST_CA_DISTANCE, Runs
from protgraph.structure.residues.structure import MOLECULE

__all__ = ["Deduplicated", "resolve_duplicates"]

_LISTED = 5


@dataclass(frozen=True, eq=False)
class Deduplicated:
    """Atoms sorted into residues of unique identity.

    ``rows``: ``(A,)`` int64, atoms to keep, sorted by residue. ``residue``: ``(A,)`` int64 from 0, ascending, residue
    of each atom. ``chain``, ``ins_code``: ``(N,)`` str, chain and insertion code of each residue; "A-2" for a second
    chain "A". The residues of a chain are consecutive. ``start``: ``(N,)`` int64, an atom with the number and name of
    each residue. ``report``: chains and residues renamed, and atoms left out.
    """

    rows: np.ndarray
    residue: np.ndarray
    chain: np.ndarray
    ins_code: np.ndarray
    start: np.ndarray
    report: LossReport


def resolve_duplicates(atoms: AtomArray, rows: np.ndarray, runs: Runs, where: str) -> Deduplicated:
    """Sort atoms into residues with unique chain, number and insertion code.

    A file may use an identity twice. A residue directly after one of the same identity, with a CA less than 2.5 Å
    apart, is a second conformation without an altloc id: the first is kept. Atoms without a CA belong to the earlier
    residue of this identity.

    All others are residues of their own. Residues of one chain id that are bonded to each other are one chain; it
    continues after a break if the numbers ascend there, apart from that of one residue. If a chain repeats identities
    of an earlier one of this id, it becomes "A-2". It does so too after a TER record, or with another
    ``label_asym_id``, if the chain id is blank, or the numbers do not ascend, or no chain of so many residues is long
    enough to reach it. Residues that share their number within one chain get insertion codes; the one whose number
    fits its neighbors best keeps it.

    ``atoms``: all M atoms. ``rows``: ``(A,)`` int64, the atoms to sort, in the order of the chains. ``runs``: runs of
    all atoms. ``where``: name of the file in errors. Raises :class:`StructureFileError` if more residues of one chain
    have the same number than there are insertion codes.
    """
    run_of_atom = runs.run[rows]
    first_of_run = _run_starts(run_of_atom)
    start = rows[first_of_run]
    size = run_lengths(first_of_run, len(rows))
    chain = atoms.chain_id[start]
    res_id = atoms.res_id[start]
    ins_code = atoms.ins_code[start]
    has_molecules = MOLECULE in atoms.get_annotation_categories()
    if not has_molecules and _are_unique(chain, res_id, ins_code):  # most files
        residue = np.arange(len(start)).repeat(size)
        is_first = _is_first(first_of_run, atoms.atom_name[rows])
        if is_first.all():
            return Deduplicated(rows, residue, chain, ins_code, start, LossReport())
        report = LossReport(duplicate_atoms=int((~is_first).sum()))
        return Deduplicated(rows[is_first], residue[is_first], chain, ins_code, start, report)

    # residues: fragments of one identity are joined, and the others renamed; in order of their chains
    identity = list(zip(chain.tolist(), res_id.tolist(), ins_code.tolist(), strict=True))
    backbone = runs.backbone[run_of_atom[first_of_run]]
    target = _join_fragments(identity, atoms.res_name[start], backbone)
    heads = np.flatnonzero(target == np.arange(len(target)))
    chain, ins_code, report = _rename(atoms, start[heads], backbone[heads], where)
    order = np.argsort(by_appearance(chain), kind="stable")
    heads = heads[order]
    chain = chain[order]
    ins_code = ins_code[order]

    # atoms: sorted by residue, without those of residue -1, and the first one of each name
    rank = np.full(len(target) + 1, -1)  # the last one is for target -1
    rank[heads] = np.arange(len(heads))
    residue = np.repeat(rank[target], size)  # (A,)
    order = np.argsort(residue, kind="stable")
    num_left_out = np.searchsorted(residue[order], 0)
    order = order[num_left_out:]
    first_of_residue = _run_starts(residue[order])
    names = atoms.atom_name[rows[order]]
    order = order[_is_first(first_of_residue, names)]
    report = report.merge(LossReport(duplicate_atoms=len(rows) - len(order)))
    return Deduplicated(rows[order], residue[order], chain, ins_code, start[heads], report)


def _are_unique(chain: np.ndarray, res_id: np.ndarray, ins_code: np.ndarray) -> bool:
    """Return True if chains follow each other, and numbers ascend in each, without a repeated identity."""
    rank = by_appearance(chain)
    chain_step = np.diff(rank)
    if (chain_step < 0).any():
        return False
    is_in_chain = chain_step == 0
    falls = res_id[1:] < res_id[:-1]
    if (is_in_chain & falls).any():
        return False
    is_repeated = res_id[1:] == res_id[:-1]
    if not (is_in_chain & is_repeated).any():
        return True
    # insertion codes may tell residues of one number apart
    identity = set(zip(chain.tolist(), res_id.tolist(), ins_code.tolist(), strict=True))
    return len(identity) == len(chain)


def _join_fragments(identity: Sequence[Hashable], name: np.ndarray, backbone: np.ndarray) -> np.ndarray:
    """Return for each fragment ``(P,)`` the one that begins its residue, -1 if it is left out.

    ``backbone`` ``(P, 4, 3)`` of residues whose fragments are joined is completed in place.
    """
    target = np.full(len(identity), -1)
    latest: dict[Hashable, int] = {}  # identity → fragment that began its last residue
    before = None
    for p, key in enumerate(identity):
        head = latest.get(key)
        is_residue = head is None
        if head is not None:
            ca_vector = backbone[p, CA].astype(np.float64) - backbone[head, CA]
            distance = float(np.linalg.norm(ca_vector))
            have_ca = not np.isnan(distance)
            is_conformation = key == before and distance < LEAST_CA_DISTANCE
            is_residue = have_ca and not is_conformation
            if not is_residue and name[p] == name[head]:
                target[p] = head
                is_missing = np.isnan(backbone[head])
                backbone[head] = np.where(is_missing, backbone[p], backbone[head])
        if is_residue:
            target[p] = p
            latest[key] = p
        before = key
    return target


def _rename(
    atoms: AtomArray, start: np.ndarray, backbone: np.ndarray, where: str
) -> tuple[np.ndarray, np.ndarray, LossReport]:
    """Return chain ids and insertion codes that make residues unique, ``(N,)`` each, and a report of the changes.

    ``start`` ``(N,)`` is an atom of each residue, ``backbone`` ``(N, 4, 3)``.
    """
    chain = atoms.chain_id[start]
    res_id = atoms.res_id[start]
    ins_code = atoms.ins_code[start]
    molecule = np.zeros(len(start), np.int64)
    if MOLECULE in atoms.get_annotation_categories():
        molecule = atoms.get_annotation(MOLECULE)[start]
    copy = np.ones(len(start), np.int64)
    notes: list[str] = []

    # each chain id alone
    rank = by_appearance(chain)
    order = np.argsort(rank, kind="stable")
    ends_of_chains = np.flatnonzero(np.diff(rank[order])) + 1
    for rows in np.split(order, ends_of_chains):
        name = str(chain[rows[0]])
        blocks = _blocks(name, res_id[rows], ins_code[rows], backbone[rows], molecule[rows])
        renumbered = _renumber(res_id[rows], ins_code[rows], blocks, name, where)
        copy[rows] = renumbered.copy
        ins_code[rows] = renumbered.ins_code
        notes += renumbered.notes
    if (copy > 1).any():
        chain = _names_of_copies(chain, copy)
    num_residues = Counter(chain[copy > 1].tolist())
    renamed = dict(sorted(num_residues.items()))
    return chain, ins_code, LossReport(repeated_chains=renamed, warnings=tuple(notes))


class _Renumbered(NamedTuple):
    """Number of the copy of a chain id from 1, ``(N,)``, insertion codes ``(N,)``, and notes."""

    copy: np.ndarray
    ins_code: np.ndarray
    notes: list[str]


def _renumber(
    res_id: np.ndarray, ins_code: np.ndarray, blocks: Sequence[_Block], chain: str, where: str
) -> _Renumbered:
    """Begin a copy of a chain where its identities repeat, and give insertion codes to those that repeat within one."""
    copy = np.ones(len(res_id), np.int64)
    ins_code = ins_code.copy()
    used: list[set[tuple[int, str]]] = [set()]  # numbers and codes of each copy
    notes: list[str] = []
    shared: list[str] = []
    for block in blocks:
        begin = block.residues.start
        keys = list(zip(res_id[block.residues].tolist(), ins_code[block.residues].tolist(), strict=True))
        if block.is_molecule or not used[-1].isdisjoint(keys):
            used.append(set())
        elif used[-1]:
            between = f"between {int(res_id[begin - 1])} and {keys[0][0]}"
            notes.append(f"chain {chain!r}: {block.reason} {between}, where no bond is; read as one chain")
        used[-1].update(keys)
        copy[block.residues] = len(used)
        # residues of one number: the one that fits its neighbors best keeps it, the first of equals
        for (number, code), places in _repeated(keys).items():
            codes = _free_codes(number, used[-1], len(places) - 1, f"{where}: chain {chain!r}")
            used[-1].update((number, free_code) for free_code in codes)
            fits = [_fits(res_id[block.residues], i) for i in places]
            unchanged = places[fits.index(max(fits))]
            changed = [begin + i for i in places if i != unchanged]
            ins_code[changed] = codes
            texts = [f"{number}{ins_code[begin + i]}" for i in places]
            shared.append(f"{number}{code} (read as {', '.join(texts)})")
    if shared:
        listed = list_first(shared, _LISTED)
        notes.append(f"chain {chain!r}: several residues of one chain have the same number: {listed}")
    return _Renumbered(copy, ins_code, notes)


class _Block(NamedTuple):
    """Residues of a chain id that can be one chain, and why they are apart from those before.

    ``is_molecule``: no chain continues here, even if no identity is repeated.
    """

    residues: slice
    is_molecule: bool
    reason: str


def _blocks(
    name: str, res_id: np.ndarray, ins_code: np.ndarray, backbone: np.ndarray, molecule: np.ndarray
) -> list[_Block]:
    """Split the residues of a chain id where no bond is and the numbers do not ascend, or a TER record is."""
    ca = backbone[:, CA].astype(np.float64)
    step = np.diff(res_id)
    is_repeated = (step == 0) & (ins_code[1:] == ins_code[:-1])
    falls = (step < 0) | is_repeated
    # One residue, e.g. a modified one, may have a number out of order: the numbers beside it decide.
    is_beside = np.linalg.norm(ca[2:] - ca[:-2], axis=1) <= 2 * CA_BOND
    is_out_of_order = (res_id[2:] > res_id[:-2]) & (res_id[1:-1] > res_id[2:])
    falls[1:] &= ~(is_out_of_order & is_beside)
    distance = np.linalg.norm(np.diff(ca, axis=0), axis=1)
    # N and C of one residue are as far apart as in a long bond, so two residues at one place are not bonded.
    is_at_one_place = distance < LEAST_CA_DISTANCE
    bonded = bonded_to_next(np.zeros(len(res_id)), backbone, backbone[:, CA]) & ~is_at_one_place
    is_far = distance > CA_BOND * np.maximum(step, 1)  # False for NaN
    after_ter = molecule[1:] != molecule[:-1]
    is_molecule = after_ter & (falls | is_far | (name == ""))

    begins = np.flatnonzero((falls | after_ter) & ~bonded) + 1
    stops = [*begins.tolist(), len(res_id)]
    blocks = [_Block(slice(0, stops[0]), is_molecule=False, reason="")]
    for begin, stop in zip(begins.tolist(), stops[1:], strict=True):
        reason = "residue numbers fall" if falls[begin - 1] else "TER or another label_asym_id is"
        blocks.append(_Block(slice(begin, stop), bool(is_molecule[begin - 1]), reason))
    return blocks


def _repeated(keys: Sequence[tuple[int, str]]) -> dict[tuple[int, str], list[int]]:
    """Return the places of each key that occurs more than once."""
    places: dict[tuple[int, str], list[int]] = {}
    for i, key in enumerate(keys):
        places.setdefault(key, []).append(i)
    return {key: rows for key, rows in places.items() if len(rows) > 1}


def _fits(res_id: np.ndarray, i: int) -> int:
    """Return on how many sides the number of a residue is that of its neighbor or next to it."""
    before = i > 0 and res_id[i] - res_id[i - 1] in (0, 1)
    after = i + 1 < len(res_id) and res_id[i + 1] - res_id[i] in (0, 1)
    return int(before) + int(after)


def _free_codes(number: int, used: Set[tuple[int, str]], size: int, where: str) -> list[str]:
    """Return insertion codes that no residue of this number has."""
    codes = [code for code in ascii_uppercase if (number, code) not in used][:size]
    if len(codes) < size:
        raise StructureFileError(
            f"{where}: {size + 1} residues of one chain have the number {number}. Allowed: one, or one for each "
            "insertion code. Number the residues of the file."
        )
    return codes


def _names_of_copies(chain: np.ndarray, copy: np.ndarray) -> np.ndarray:
    """Return chain ids with "-2", "-3", … for further copies, distinct from all other chain ids."""
    used = set(chain.tolist())
    name_of_copy: dict[tuple[str, int], str] = {}
    names = []
    for copy_of_chain in zip(chain.tolist(), copy.tolist(), strict=True):
        chain_id, number = copy_of_chain
        if number == 1:
            names.append(chain_id)
            continue
        if copy_of_chain not in name_of_copy:
            while f"{chain_id}-{number}" in used:
                number += 1
            name_of_copy[copy_of_chain] = f"{chain_id}-{number}"
            used.add(name_of_copy[copy_of_chain])
        names.append(name_of_copy[copy_of_chain])
    return np.array(names, dtype=str)


def _run_starts(values: np.ndarray) -> np.ndarray:
    """Return the first row of each run of equal values, ``(R,)`` int64."""
    is_start = np.empty(len(values), bool)
    is_start[:1] = True
    np.not_equal(values[1:], values[:-1], out=is_start[1:])
    return is_start.nonzero()[0]


def _is_first(start: np.ndarray, name: np.ndarray) -> np.ndarray:
    """Return False for atoms preceded by one of the same residue and name, ``(A,)`` bool.

    ``start`` ``(N,)`` are the first atoms of the residues, ``name`` ``(A,)`` str.
    """
    residue = np.arange(len(start)).repeat(run_lengths(start, len(name)))
    number = by_appearance(name)
    num_names = number.max(initial=0) + 1
    name_of_residue = residue * num_names + number
    _, first = np.unique(name_of_residue, return_index=True)
    is_first = np.zeros(len(name), bool)
    is_first[first] = True
    return is_first
