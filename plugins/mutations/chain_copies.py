"""Identical chains of homo-oligomers, and variants with a mutation in every copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from protgraph.structure import Residues
from protgraph.structure.mutation import Mutation

__all__ = ["chain_copies", "mutate_copies"]

_SHARED = 0.5  # least fraction of common residue numbers, of the shorter chain


def chain_copies(residues: Residues) -> dict[str, tuple[str, ...]]:
    """Return the identical chains of each chain, itself first.

    Two chains are copies if the residues with the same number and insertion code in both have the same types, and at
    least half of the residues of the shorter one are among them: each may lack residues.

    Examples
    --------
    ``{"A": ("A", "B"), "B": ("B", "A"), "C": ("C",)}`` for a homodimer with a third chain.
    """
    types: dict[str, dict[tuple[int, str], str]] = {name: {} for name in residues.chain_names}
    columns = (residues.chain.tolist(), residues.res_id.tolist(), residues.ins_code.tolist(), residues.sequence)
    for chain, number, code, letter in zip(*columns, strict=True):
        types[chain][number, code] = letter
    names = residues.chain_names
    return {a: (a, *(b for b in names if b != a and _is_copy(types[a], types[b]))) for a in names}


def _is_copy(one: Mapping[tuple[int, str], str], other: Mapping[tuple[int, str], str]) -> bool:
    shared = one.keys() & other.keys()
    return len(shared) >= _SHARED * min(len(one), len(other)) and all(one[key] == other[key] for key in shared)


def mutate_copies(
    residues: Residues, variant: Sequence[Mutation], *, copies: Mapping[str, tuple[str, ...]] | None = None
) -> tuple[tuple[Mutation, ...], tuple[str, ...]]:
    """Return a variant with its mutations in all copies of their chains, and the ids of residues that copies lack.

    ``copies`` is the result of :func:`chain_copies`, if there are several variants.

    A copy with an explicit mutation of the same residue keeps it.
    """
    copies = chain_copies(residues) if copies is None else copies
    present, given = set(residues.ids), {m.residue for m in variant}
    mutations, absent = list(variant), []
    for m in variant:
        for name in copies.get(m.chain, ())[1:]:
            copied = replace(m, chain=name)
            if copied.residue not in present:
                absent.append(copied.residue)
            elif copied.residue not in given:
                given.add(copied.residue)
                mutations.append(copied)
    return tuple(mutations), tuple(absent)
