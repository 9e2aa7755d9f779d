"""Corresponding residues of two structures, by residue number or by alignment of the sequences of their chains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from protgraph.errors import OptionError, SelectionError
from protgraph.similarity.pair_alignment import standard_letters
from protgraph.structure.residues.alphabet import UNKNOWN
from protgraph.structure.residues.residues import Residues
from protgraph.wording import count_noun

__all__ = ["MATCH_RULES", "ResidueMatch", "match_residues"]

MATCH_RULES = ("number", "sequence")
"""Rules of :func:`match_residues`."""


@dataclass(frozen=True, eq=False)
class ResidueMatch:
    """Corresponding residues of a model and a reference.

    Parameters
    ----------
    model, reference : ndarray
        ``(M,)`` int64, rows of corresponding residues; those of the reference ascend.
    chains : dict of str to str
        Chain of the model → chain of the reference.
    same_type : int
        Corresponding residues of equal type.
    known_types : int
        Corresponding residues of which both types are known.
    """

    model: np.ndarray
    reference: np.ndarray
    chains: dict[str, str]
    same_type: int
    known_types: int


def match_residues(
    model: Residues, reference: Residues, *, chains: Mapping[str, str] | None = None, by: str = "number"
) -> ResidueMatch:
    """Return the residues of a model that correspond to residues of a reference.

    Parameters
    ----------
    model, reference : Residues
    chains : mapping of str to str, optional
        Chain of the model → chain of the reference. By default, chains of equal names; two structures of one chain
        each are compared whatever their names. Equivalent chains of a homo-oligomer are not exchanged.
    by : {"number", "sequence"}
        "number": equal residue number and insertion code. "sequence": global alignment of the sequences of two
        chains, without penalty for gaps at the ends.

    Raises
    ------
    SelectionError
        A chain does not exist, or no residue corresponds.
    OptionError
        The rule is unknown, or two chains of the model have the same chain of the reference.
    """
    if by not in MATCH_RULES:
        raise OptionError(f"rule of corresponding residues: {by!r}. Allowed: {', '.join(MATCH_RULES)}.")
    pairs = _chain_pairs(model, reference, chains)
    parts = []
    for own, other in pairs.items():
        rows, others = np.flatnonzero(model.chain == own), np.flatnonzero(reference.chain == other)
        first, second = (_by_number if by == "number" else _by_sequence)(model, reference, rows, others)
        parts.append(np.stack([rows[first], others[second]]))
    matched = np.concatenate(parts, axis=1)
    if matched.shape[1] == 0:
        raise SelectionError(
            f"no residue of {model.name} corresponds to one of {reference.name} by residue number: "
            f"{_ranges(model, pairs)}; {_ranges(reference, pairs.values())}. Match by sequence, or name the chains."
        )
    matched = matched[:, np.argsort(matched[1])]
    types = model.aatype[matched[0]], reference.aatype[matched[1]]
    known = (types[0] != UNKNOWN) & (types[1] != UNKNOWN)
    return ResidueMatch(*matched, pairs, int(((types[0] == types[1]) & known).sum()), int(known.sum()))


def _chain_pairs(model: Residues, reference: Residues, chains: Mapping[str, str] | None) -> dict[str, str]:
    """Return the chain of the reference for each chain of the model that is compared."""
    own, others = model.chain_names, reference.chain_names
    if chains is None:
        common = [name for name in own if name in others]
        if common:
            return {name: name for name in common}
        if len(own) == len(others) == 1:
            return {own[0]: others[0]}
        raise SelectionError(
            f"{model.name} has the chains {_names(own)}, {reference.name} {_names(others)}: no common name. "
            "Name the chain of the reference for each chain of the model."
        )
    for structure, names in ((model, chains.keys()), (reference, chains.values())):
        unknown = [name for name in names if name not in structure.chain_names]
        if unknown:
            raise SelectionError(
                f"{structure.name}: no protein chain {unknown[0]!r}. It has {_names(structure.chain_names)}."
            )
    if len(set(chains.values())) < len(chains):
        raise OptionError(f"chains {dict(chains)}: a chain of the reference is named twice. Name each once.")
    return dict(chains)


def _by_number(
    model: Residues, reference: Residues, rows: np.ndarray, others: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return places of residues with equal number and insertion code, in ``rows`` and in ``others``."""
    keys = [
        {key: place for place, key in enumerate(zip(s.res_id[r].tolist(), s.ins_code[r].tolist(), strict=True))}
        for s, r in ((model, rows), (reference, others))
    ]
    common = [key for key in keys[0] if key in keys[1]]
    first, second = (np.array([places[key] for key in common], np.int64) for places in keys)
    return first, second


def _by_sequence(
    model: Residues, reference: Residues, rows: np.ndarray, others: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return places of residues that are aligned, in ``rows`` and in ``others``."""
    from biotite.sequence import ProteinSequence
    from biotite.sequence.align import SubstitutionMatrix, align_optimal

    texts = (model.sequence, reference.sequence)
    sequences = [
        ProteinSequence(standard_letters("".join(text[i] for i in r)))
        for text, r in zip(texts, (rows, others), strict=True)
    ]
    matrix = SubstitutionMatrix.std_protein_matrix()  # BLOSUM62
    trace = align_optimal(*sequences, matrix, (-11, -1), terminal_penalty=False, max_number=1)[0].trace
    first, second = trace[(trace >= 0).all(axis=1)].T
    return first, second


def _names(chains: tuple[str, ...]) -> str:
    return ", ".join(map(repr, chains))


def _ranges(structure: Residues, chains: object) -> str:
    """Return e.g. "1abc has A 1 to 120 (118 residues)"."""
    texts = []
    for name in chains:  # type: ignore[attr-defined]
        numbers = structure.res_id[structure.chain == name]
        texts.append(f"{name} {numbers.min()} to {numbers.max()} ({count_noun(len(numbers), 'residue')})")
    return f"{structure.name} has {', '.join(texts)}"
