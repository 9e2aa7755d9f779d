"""Rows of mutated residues in a structure, with the wild type checked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from protgraph.errors import MutationError, list_first
from protgraph.structure.mutation.mutation import Mutation
from protgraph.structure.residues.alphabet import ALPHABET, THREE_LETTER
from protgraph.structure.residues.residues import Residues

__all__ = ["ResidueIndex", "find_residues"]

_SHIFTS = 200  # largest difference of numbers that is searched for a hint
_LISTED = 12  # chains in a message


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


class ResidueIndex:
    """Rows of residues by chain, residue number and insertion code.

    Parameters
    ----------
    residues : Residues
    """

    def __init__(self, residues: Residues) -> None:
        self.residues = residues
        columns = (residues.chain.tolist(), residues.res_id.tolist(), residues.ins_code.tolist())
        self._row = {key: row for row, key in enumerate(zip(*columns, strict=True))}
        self._letters = residues.sequence

    def row(self, chain: str, res_id: int, ins_code: str = "") -> int | None:
        """Return the row of a residue, or None."""
        return self._row.get((chain, res_id, ins_code))

    def rows(self, mutations: Sequence[Mutation]) -> np.ndarray:
        """Return the rows of mutated residues; see :func:`find_residues`."""
        rows = [self._checked(m, mutations) for m in mutations]
        return np.array(rows, np.int64)

    def _checked(self, m: Mutation, mutations: Sequence[Mutation]) -> int:
        row = self.row(m.chain, m.res_id, m.ins_code)
        if row is None:
            raise self._absent(m, mutations)
        if self._letters[row] != m.wild_type:
            r = self.residues
            parent = THREE_LETTER[ALPHABET.index(self._letters[row])]
            found = str(r.res_name[row])
            read_as = "" if found == parent else f" (read as {parent})"
            raise MutationError(
                f"wrong wild type: {m} ({r.name}). The structure has {found}{read_as} at {m.residue}, not "
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
            there = f"It has {', '.join(same_number)}"
        else:
            numbers = r.res_id[rows]
            lower, higher = rows[numbers < m.res_id], rows[numbers > m.res_id]
            near = [lower[r.res_id[lower].argmax()]] if len(lower) else []
            near += [higher[r.res_id[higher].argmin()]] if len(higher) else []
            place = "unresolved or absent between" if len(near) == 2 else "outside of the chain; the nearest is"
            there = f"The residue is {place} {' and '.join(map(self._described, near))}"
        return MutationError(
            f"unknown residue: {m} ({r.name}). {there}.{self._hint(m, mutations)}",
            mutation=str(m),
            kind="unknown_residue",
        )

    def _described(self, row: np.integer | int) -> str:
        return f"{self.residues.res_name[row]} {self.residues.ids[row]}"

    def _hint(self, m: Mutation, mutations: Sequence[Mutation]) -> str:
        """Return a sentence with places of the wild type near the requested one, or ""."""
        same_chain = [other for other in mutations if other.chain == m.chain]
        others_fit = any(self._fits(other, other.chain, other.res_id) for other in same_chain)
        shift = self._shift([m] if others_fit else same_chain)
        if shift is not None:
            place = f"{m.chain}:{m.res_id + shift}{m.ins_code}"
            if others_fit:
                return f" The nearest {_name(m.wild_type)} is at {place}."
            return f" {_name(m.wild_type)} is at {place}: numbering shifted by {shift:+d}?"
        others = [name for name in self.residues.chain_names if name != m.chain and self._fits(m, name, m.res_id)]
        if others:
            places = list_first([f"{name}:{m.res_id}{m.ins_code}" for name in others], _LISTED)
            return f" {_name(m.wild_type)} is at {places}: another chain?"
        return ""

    def _shift(self, mutations: Sequence[Mutation]) -> int | None:
        """Return the smallest shift of numbers at which all of these mutations have their wild types, or None."""
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
