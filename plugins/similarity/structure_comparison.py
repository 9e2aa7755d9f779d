"""Comparison of a model with a reference structure: scores of the whole model, and lDDT of each residue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from protgraph_plugins.similarity.superposition_search import SuperpositionScores, superposition_scores

from protgraph.errors import MissingCoordinatesError, OptionError, SelectionError
from protgraph.structure import Residues
from protgraph.structure.compare import EQUIVALENT_ATOMS, LocalDistanceScores, compute_lddt
from protgraph.structure.residues import UNKNOWN
from protgraph.wording import count_noun

__all__ = ["MATCH_RULES", "ResidueMatch", "StructureComparison", "compare_structures", "match_residues"]

MATCH_RULES = ("number", "sequence")
"""Rules of :func:`match_residues`."""
_TERMINAL_OXYGEN = "OXT"  # many models have none, and it is not part of any residue type
_FEW_EQUAL = 0.5  # fraction of residues of equal type below which the numbering may be shifted


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


@dataclass(frozen=True, eq=False)
class StructureComparison:
    """Scores of a model against a reference of R residues.

    All scores count the residues of the reference that the model lacks as wrong, except the RMSD, which has only
    corresponding residues.

    Parameters
    ----------
    model, reference : Residues
    match : ResidueMatch
        M corresponding residues.
    superposed : SuperpositionScores
        TM-score, GDT and RMSD of CA.
    lddt_ca : LocalDistanceScores
        lDDT of CA; per residue of the reference.
    lddt : LocalDistanceScores, optional
        lDDT of all heavy atoms; None if one of the structures has only CA.
    missing_atoms : int
        Heavy atoms of corresponding residues of the reference that the model lacks.
    """

    model: Residues
    reference: Residues
    match: ResidueMatch
    superposed: SuperpositionScores
    lddt_ca: LocalDistanceScores
    lddt: LocalDistanceScores | None
    missing_atoms: int

    @property
    def scores(self) -> dict[str, float]:
        """Scores of the whole model by name; ``rmsd`` in Å, the others 0 to 1."""
        s = self.superposed
        local = {"lddt": self.lddt.score} if self.lddt is not None else {}
        own = {"tm_score": s.tm_score, "gdt_ts": s.gdt_ts, "gdt_ha": s.gdt_ha, "rmsd": s.rmsd}
        return {**local, "lddt_ca": self.lddt_ca.score, **own}

    @property
    def distance(self) -> np.ndarray:
        """Distance of corresponding CA in the superposition of the TM-score, ``(R,)`` float64, Å; NaN without one."""
        away = np.full(len(self.reference), np.nan)
        moved = self.superposed.superposition.apply(self.model.pos[self.match.model])
        away[self.match.reference] = np.linalg.norm(moved - self.reference.pos[self.match.reference], axis=1)
        return away

    def lines(self) -> list[str]:
        """Return the counts of residues that correspond and of those that do not, and doubts about the numbering."""
        m, model, reference = self.match, self.model, self.reference
        pairs = ", ".join(f"{own} with {other}" for own, other in m.chains.items())
        texts = [f"{count_noun(len(m.model), 'residue')} compared, chains: {pairs}"]
        for protein, other, effect in ((reference, model, "counted as wrong"), (model, reference, "not scored")):
            missing = len(protein) - len(m.model)
            if missing:
                total = count_noun(len(protein), "residue")
                texts.append(f"{missing} of {total} of {protein.name} not in {other.name}: {effect}")
        if self.lddt is None:
            texts.append("only CA in one of the structures: no lDDT of all atoms")
        elif self.missing_atoms:
            texts.append(
                f"{count_noun(self.missing_atoms, 'heavy atom')} of compared residues not in {model.name}: "
                "counted as wrong in lDDT of all atoms"
            )
        if m.same_type < _FEW_EQUAL * m.known_types:
            texts.append(
                f"only {m.same_type} of {count_noun(m.known_types, 'compared residue')} have the same type: the "
                "numbering may be shifted"
            )
        return texts


def compare_structures(
    model: Residues, reference: Residues, *, chains: Mapping[str, str] | None = None, by: str = "number"
) -> StructureComparison:
    """Compare a model with a reference structure of the same protein or complex.

    Parameters
    ----------
    model, reference : Residues
    chains, by
        Corresponding chains and residues, see :func:`match_residues`. If chains are given,
        other chains are not compared.

    Returns
    -------
    StructureComparison

    Raises
    ------
    MissingCoordinatesError
        One of them is only a sequence.
    SelectionError, OptionError
        See :func:`match_residues`.
    """
    for structure in (model, reference):
        if not structure.has_coordinates:
            raise MissingCoordinatesError(f"{structure.name} is only a sequence. Give a structure file.")
    if chains is not None:
        model, reference = model.chains(list(chains)), reference.chains(list(chains.values()))
    match = match_residues(model, reference, chains=chains, by=by)
    superposed = superposition_scores(model.pos[match.model], reference.pos[match.reference], length=len(reference))
    moved = np.full(reference.pos.shape, np.nan)
    moved[match.reference] = model.pos[match.model]
    lddt_ca = compute_lddt(moved, reference.pos)
    lddt, missing = None, 0
    if all(set(structure.atom_name.tolist()) != {"CA"} for structure in (model, reference)):
        lddt, missing = _all_atoms(model, reference, match)
    return StructureComparison(model, reference, match, superposed, lddt_ca, lddt, missing)


def _all_atoms(model: Residues, reference: Residues, match: ResidueMatch) -> tuple[LocalDistanceScores, int]:
    """Compute lDDT of all heavy atoms, and count those of corresponding residues that the model lacks."""
    # atom of the model for each atom of the reference, by residue and name; -1 for none
    counterpart = dict(zip(match.model.tolist(), match.reference.tolist(), strict=True))
    atom_of_name = {}
    names = zip(model.atom_residue.tolist(), model.atom_name.tolist(), strict=True)
    for atom, (residue, name) in enumerate(names):
        if residue in counterpart:
            atom_of_name[counterpart[residue], name] = atom
    compared = reference.atom_name != _TERMINAL_OXYGEN
    residues = reference.atom_residue[compared]
    keys = list(zip(residues.tolist(), reference.atom_name[compared].tolist(), strict=True))
    atoms = np.array([atom_of_name.get(key, -1) for key in keys])
    positions = np.where((atoms >= 0)[:, None], model.atom_pos[atoms].astype(np.float64), np.nan)
    equivalent = _equivalent_atoms(reference.res_name, keys)
    scores = compute_lddt(positions, reference.atom_pos[compared], residue=residues, equivalent=equivalent)
    return scores, int((atoms[np.isin(residues, match.reference)] < 0).sum())


def _equivalent_atoms(res_name: np.ndarray, keys: list[tuple[int, str]]) -> np.ndarray:
    """Return the equivalent atom of each atom, or itself, ``(A,)`` int64; an atom without its partner has none."""
    atom_of_key = {key: atom for atom, key in enumerate(keys)}
    exchanged = np.arange(len(keys))
    for residue, name in enumerate(res_name.tolist()):
        for pair in EQUIVALENT_ATOMS.get(name, ()):
            first, second = (atom_of_key.get((residue, atom)) for atom in pair)
            if first is not None and second is not None:
                exchanged[first], exchanged[second] = second, first
    return exchanged


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
    of_chains = []
    for own, other in pairs.items():
        rows, others = np.flatnonzero(model.chain == own), np.flatnonzero(reference.chain == other)
        first, second = (_by_number if by == "number" else _by_sequence)(model, reference, rows, others)
        of_chains.append(np.stack([rows[first], others[second]]))
    matched = np.concatenate(of_chains, axis=1)
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
    model_names, reference_names = model.chain_names, reference.chain_names
    if chains is None:
        common = [name for name in model_names if name in reference_names]
        if common:
            return {name: name for name in common}
        if len(model_names) == len(reference_names) == 1:
            return {model_names[0]: reference_names[0]}
        raise SelectionError(
            f"{model.name} has the chains {_names(model_names)}, {reference.name} {_names(reference_names)}: no common "
            "name. Name the chain of the reference for each chain of the model."
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
    model: Residues, reference: Residues, rows: np.ndarray, reference_rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return places of residues with equal number and insertion code, in ``rows`` and in ``reference_rows``."""
    in_model = _place_of_number(model, rows)
    in_reference = _place_of_number(reference, reference_rows)
    common = [number for number in in_model if number in in_reference]
    first = np.array([in_model[number] for number in common], np.int64)
    second = np.array([in_reference[number] for number in common], np.int64)
    return first, second


def _place_of_number(structure: Residues, rows: np.ndarray) -> dict[tuple[int, str], int]:
    """Return the place in ``rows`` of each residue number and insertion code."""
    numbers = zip(structure.res_id[rows].tolist(), structure.ins_code[rows].tolist(), strict=True)
    return {number: place for place, number in enumerate(numbers)}


def _by_sequence(
    model: Residues, reference: Residues, rows: np.ndarray, reference_rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return places of residues that are aligned, in ``rows`` and in ``reference_rows``."""
    from biotite.sequence import ProteinSequence
    from biotite.sequence.align import SubstitutionMatrix, align_optimal

    model_text, reference_text = model.sequence, reference.sequence
    model_sequence = ProteinSequence("".join(model_text[row] for row in rows))
    reference_sequence = ProteinSequence("".join(reference_text[row] for row in reference_rows))
    matrix = SubstitutionMatrix.std_protein_matrix()  # BLOSUM62
    alignments = align_optimal(
        model_sequence, reference_sequence, matrix, (-11, -1), terminal_penalty=False, max_number=1
    )
    trace = alignments[0].trace
    first, second = trace[(trace >= 0).all(axis=1)].T
    return first, second


def _names(chains: tuple[str, ...]) -> str:
    return ", ".join(map(repr, chains))


def _ranges(structure: Residues, chains: Iterable[str]) -> str:
    """Return e.g. "1abc has A 1 to 120 (118 residues)"."""
    texts = []
    for name in chains:
        numbers = structure.res_id[structure.chain == name]
        texts.append(f"{name} {numbers.min()} to {numbers.max()} ({count_noun(len(numbers), 'residue')})")
    return f"{structure.name} has {', '.join(texts)}"
