"""Rows of mutated residues in a structure, with the wild type checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from protgraph_plugins.mutations.mutation import Mutation

from protgraph.errors import MutationError, list_first
from protgraph.structure import ALPHABET, THREE_LETTER, Residues

__all__ = ["ResidueIndex", "find_residues"]

_SHIFTS = 200  # largest difference of numbers that is searched for a hint
_LISTED = 12  # chains in a message
_FEWEST_PLACES, _LEAST_FIT = 10, 0.5  # numbers of a table are wrong if fewer of its residues have their wild type


def find_residues(residues: Residues, mutations: Sequence[Mutation]) -> np.ndarray:
    """Return the rows ``(M,)`` int64 of the mutated residues.

    Parameters
    ----------
    residues : Residues
    mutations : sequence of Mutation
        Chain, residue number and insertion code must be exactly those of :attr:`Residues.chain` (author chain id; with
        an assembly, its copies are "A-2", …), ``res_id`` and ``ins_code``. The wild type is the type of the residue, or
        of its parent if it is modified: M for MSE.

    Raises
    ------
    MutationError
        The structure does not have a chain or residue, or it has another type there. The message has the residue that
        it has, and the nearest ones that fit.

    Notes
    -----
    Use :class:`ResidueIndex` for many variants of one structure.
    """
    return ResidueIndex(residues).rows(mutations)


class _WildType(NamedTuple):
    """Residue of a chain and its type in a table of mutations."""

    res_id: int
    ins_code: str
    letter: str


class ResidueIndex:
    """Rows of residues by chain, residue number and insertion code.

    Parameters
    ----------
    residues : Residues
    """

    def __init__(self, residues: Residues) -> None:
        self.residues = residues
        keys = zip(residues.chain.tolist(), residues.res_id.tolist(), residues.ins_code.tolist(), strict=True)
        self._row = {key: row for row, key in enumerate(keys)}
        self._letters = residues.sequence

    def row(self, chain: str, res_id: int, ins_code: str = "") -> int | None:
        """Return the row of a residue, or None."""
        return self._row.get((chain, res_id, ins_code))

    def rows(self, mutations: Sequence[Mutation]) -> np.ndarray:
        """Return the rows of mutated residues; see :func:`find_residues`."""
        rows = [self._checked(m, mutations) for m in mutations]
        return np.array(rows, np.int64)

    def numbering_errors(self, variants: Iterable[Sequence[Mutation]]) -> dict[str, MutationError]:
        """Return an error for each chain in which most mutated residues of a table have another type.

        The numbers are then those of another sequence, and the rows that fit do so by chance: one in about twenty.
        Residues that the structure does not have are not counted.
        """
        types_of_chain: dict[str, set[_WildType]] = {}
        for variant in variants:
            for m in variant:
                wild_type = _WildType(m.res_id, m.ins_code, m.wild_type)
                types_of_chain.setdefault(m.chain, set()).add(wild_type)

        errors: dict[str, MutationError] = {}
        for chain, wild_types in sorted(types_of_chain.items()):
            present = fitting = 0
            for wild_type in wild_types:
                row = self.row(chain, wild_type.res_id, wild_type.ins_code)
                if row is not None:
                    present += 1
                    fitting += self._letters[row] == wild_type.letter
            if present >= _FEWEST_PLACES and fitting < _LEAST_FIT * present:
                errors[chain] = self._numbering_error(chain, wild_types, present, fitting)
        return errors

    def _numbering_error(
        self, chain: str, wild_types: Collection[_WildType], present: int, fitting: int
    ) -> MutationError:
        """Return the error with the shift of numbers at which most residues have their wild type, if there is one."""
        r = self.residues
        numbers_of_type: dict[str, list[int]] = {}
        for row in np.flatnonzero(r.chain == chain).tolist():
            numbers_of_type.setdefault(self._letters[row], []).append(int(r.res_id[row]))
        shifts: Counter[int] = Counter()
        for wild_type in wild_types:
            for number in numbers_of_type.get(wild_type.letter, ()):
                shifts[number - wild_type.res_id] += 1
        shift, shifted = max(shifts.items(), key=lambda item: (item[1], -abs(item[0]), item[0]), default=(0, 0))
        cause = f"{present - fitting} of {present} mutated residues have another type in the structure"
        remedy = "Renumber the table, or give the structure that it describes."
        if shifted >= _LEAST_FIT * len(wild_types):
            remedy = f"With {shift:+d} added to the numbers, {shifted} of {len(wild_types)} have theirs. {remedy}"
        return MutationError(
            f"numbers of another sequence: chain {chain!r} ({r.name}). {cause}. {remedy}", kind="numbering"
        )

    def _checked(self, m: Mutation, mutations: Sequence[Mutation]) -> int:
        row = self.row(m.chain, m.res_id, m.ins_code)
        if row is None:
            raise self._absent(m, mutations)
        if self._letters[row] != m.wild_type:
            r = self.residues
            name = str(r.res_name[row])
            parent = _name(self._letters[row])
            if name != parent:
                name = f"{name} (read as {parent})"
            raise MutationError(
                f"wrong wild type: {m} ({r.name}). The structure has {name} at {m.residue}, not "
                f"{_name(m.wild_type)}.{self._hint(m, mutations)}",
                mutation=str(m),
                kind="wild_type",
            )
        return row

    def _absent(self, m: Mutation, mutations: Sequence[Mutation]) -> MutationError:
        """Return the error for a chain or residue that the structure does not have."""
        r = self.residues
        if m.chain not in r.chain_names:
            chains = list_first([repr(name) for name in r.chain_names], _LISTED)
            return MutationError(
                f"unknown chain: {m} ({r.name}). Chains: {chains}.{self._hint(m, mutations)}",
                mutation=str(m),
                kind="unknown_chain",
            )
        rows = np.flatnonzero(r.chain == m.chain)
        same_number = [self._described(row) for row in rows if r.res_id[row] == m.res_id]
        if same_number:
            there = f"Number {m.res_id} is {', '.join(same_number)}"
        else:
            numbers = r.res_id[rows]
            lower = rows[numbers < m.res_id]
            higher = rows[numbers > m.res_id]
            near = []
            if len(lower):
                near.append(self._described(lower[r.res_id[lower].argmax()]))
            if len(higher):
                near.append(self._described(higher[r.res_id[higher].argmin()]))
            where = "unresolved or absent between" if len(near) == 2 else "outside of the chain; the nearest is"
            there = f"The residue is {where} {' and '.join(near)}"
        return MutationError(
            f"unknown residue: {m} ({r.name}). {there}.{self._hint(m, mutations)}",
            mutation=str(m),
            kind="unknown_residue",
        )

    def _described(self, row: np.integer | int) -> str:
        return f"{self.residues.res_name[row]} {self.residues.ids[row]}"

    def _hint(self, m: Mutation, mutations: Sequence[Mutation]) -> str:
        """Return a sentence with places of the wild type near the requested one, or ""."""
        same_chain = [mutation for mutation in mutations if mutation.chain == m.chain]
        shift = self._shift(same_chain) if len(same_chain) > 1 else None
        if shift is not None:
            address = f"{m.chain}:{m.res_id + shift}{m.ins_code}"
            return f" {_name(m.wild_type)} is at {address}: numbering shifted by {shift:+d}?"
        nearest = self._nearest(m)
        if nearest is not None:
            return self._nearest_hint(m, nearest, alone=len(same_chain) == 1)
        addresses = self._addresses_in_other_chains(m)
        if addresses:
            return f" {_name(m.wild_type)} is at {list_first(addresses, _LISTED)}: another chain?"
        return ""

    def _addresses_in_other_chains(self, m: Mutation) -> list[str]:
        """Return the residues of other chains that have the wild type at the requested number."""
        addresses = []
        for name in self.residues.chain_names:
            if name != m.chain and self._fits(m, name, m.res_id):
                addresses.append(f"{name}:{m.res_id}{m.ins_code}")
        return addresses

    def _nearest(self, m: Mutation) -> int | None:
        """Return the row of the nearest residue of the chain with the wild type, whatever its insertion code."""
        r = self.residues
        rows = np.flatnonzero((r.chain == m.chain) & (abs(r.res_id - m.res_id) <= _SHIFTS))
        fitting = [row for row in rows.tolist() if self._letters[row] == m.wild_type]

        def distance(row: int) -> tuple[int, bool, int]:
            shift = int(r.res_id[row]) - m.res_id
            return abs(shift), r.ins_code[row] != m.ins_code, -shift

        return min(fitting, key=distance, default=None)

    def _nearest_hint(self, m: Mutation, row: int, *, alone: bool) -> str:
        name, code = _name(m.wild_type), str(self.residues.ins_code[row])
        shift = int(self.residues.res_id[row]) - m.res_id
        there = replace(m, res_id=m.res_id + shift, ins_code=code)
        address = f"{m.chain}:{there.res_id}" + (f"[{code}]" if code else "")
        if shift == 0:
            return f" {name} is at {address}: {there}?"
        if alone and code == m.ins_code:
            return f" {name} is at {address}: numbering shifted by {shift:+d}?"
        return f" The nearest {name} is at {address}."

    def _shift(self, mutations: Sequence[Mutation]) -> int | None:
        """Return the smallest shift of numbers at which all of these mutations have their wild types.

        None if there is no such shift, or if a mutation has its wild type without a shift.
        """
        if any(self._fits(m, m.chain, m.res_id) for m in mutations):
            return None
        for size in range(1, _SHIFTS + 1):
            for shift in (size, -size):
                if all(self._fits(m, m.chain, m.res_id + shift) for m in mutations):
                    return shift
        return None

    def _fits(self, m: Mutation, chain: str, res_id: int) -> bool:
        row = self.row(chain, res_id, m.ins_code)
        return row is not None and self._letters[row] == m.wild_type


def _name(letter: str) -> str:
    return THREE_LETTER[ALPHABET.index(letter)]
