"""Residue types: the twenty amino acids and X, parents of modified residues, and kinds of molecules by residue name.

Names and parents come from the Chemical Component Dictionary (CCD) that biotite includes.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Literal, get_args

import numpy as np

__all__ = [
    "ALPHABET",
    "AMINO_ACID_NAMES",
    "KINDS",
    "THREE_LETTER",
    "UNKNOWN",
    "ResidueKind",
    "aatype",
    "name_numbers",
    "residue_kind",
]

ALPHABET = "ACDEFGHIKLMNPQRSTVWYX"
"""One-letter codes in the order of ``aatype``."""

UNKNOWN = ALPHABET.index("X")
"""``aatype`` of a residue without a known parent."""

THREE_LETTER = (
    *("ALA", "CYS", "ASP", "GLU", "PHE", "GLY", "HIS", "ILE", "LYS", "LEU"),
    *("MET", "ASN", "PRO", "GLN", "ARG", "SER", "THR", "VAL", "TRP", "TYR", "UNK"),
)
"""Residue names in the order of ``aatype``."""

_STANDARD = {name: code for code, name in enumerate(THREE_LETTER)}

# Names that the CCD lacks or has for another molecule.
_PARENTS = {
    # Amino acids 21 and 22, with the most similar standard one (Se for S; a pyrroline on Nζ).
    "SEC": "CYS",
    "PYL": "LYS",
    # Protonation states and disulfides as Amber names them (Amber reference manual, "Residue naming conventions").
    **dict.fromkeys(("HID", "HIE", "HIP"), "HIS"),
    **dict.fromkeys(("CYX", "CYM"), "CYS"),
    "ASH": "ASP",
    "GLH": "GLU",
    "LYN": "LYS",
    # The same as CHARMM names them (top_all36_prot.rtf).
    **dict.fromkeys(("HSD", "HSE", "HSP"), "HIS"),
    "LSN": "LYS",
    # Neutral arginine and deprotonated tyrosine as Schrödinger's programs and PDB2PQR name them.
    **dict.fromkeys(("ARN", "AR0"), "ARG"),
    "TYM": "TYR",
}

AMINO_ACID_NAMES = (*THREE_LETTER[:UNKNOWN], *_PARENTS)
"""Names of the twenty amino acids and of their protonation states, and of amino acids 21 and 22."""

# Names of the CCD, and of molecular dynamics programs as in biotite's filter_solvent.
_WATERS = frozenset({"HOH", "DOD", "WAT", "H2O", "SOL", "TIP", "TIP3", "TIP4", "TIP5"})

_NUCLEOTIDES = frozenset({"A", "C", "G", "U", "I", "N", "DA", "DC", "DG", "DT", "DU", "DI", "DN"})

ResidueKind = Literal["protein", "water", "nucleic", "saccharide", "other"]
"""Kind of molecule."""

KINDS: tuple[ResidueKind, ...] = get_args(ResidueKind)
"""Kinds in the order of their numbers in :func:`name_numbers`."""


@cache
def residue_kind(res_name: str) -> ResidueKind:
    """Return the kind of molecule of a residue name, by the CCD.

    ``res_name``: component id, usually three letters (the CCD also has one, two and five). Returns "protein" for every
    peptide-linking type, also for a free amino acid.

    Examples
    --------
    >>> [residue_kind(name) for name in ("MSE", "HOH", "DA", "NAG", "HEM")]
    ['protein', 'water', 'nucleic', 'saccharide', 'other']
    """
    if res_name in _STANDARD or res_name in _PARENTS:
        return "protein"
    if res_name in _WATERS:
        return "water"
    if res_name in _NUCLEOTIDES:
        return "nucleic"
    # The CCD takes 0.2 s to load, so it is used for other names only.
    protein, nucleic, saccharide = _components()
    if res_name in protein:
        return "protein"
    return "nucleic" if res_name in nucleic else "saccharide" if res_name in saccharide else "other"


def name_numbers(res_names: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the kind of molecule and the type of amino acid of residue names, looked up once for each name.

    Returns ``kind``: ``(R,)`` int64, index in :data:`KINDS`. ``amino_acid``: ``(R,)`` int64, index in
    :data:`THREE_LETTER`; −1 for all other names, also for those of modified residues.

    Examples
    --------
    >>> [x.tolist() for x in name_numbers(["CYS", "MSE", "HOH"])]
    [[0, 0, 1], [1, -1, -1]]
    """
    numbers = np.fromiter(map(_numbers.__getitem__, res_names), np.int64)
    return numbers & 7, (numbers >> 3) - 1


class _Numbers(dict[str, int]):
    """Kind + 8 · (type + 1) of residue names; a dict is read in a third of the time of a cached function."""

    def __missing__(self, res_name: str) -> int:
        number = KINDS.index(residue_kind(res_name)) + 8 * (_STANDARD.get(res_name, -1) + 1)
        self[res_name] = number
        return number


_numbers = _Numbers()


@cache
def aatype(res_name: str) -> int:
    """Return the index in :data:`ALPHABET` of a residue or of its parent; :data:`UNKNOWN` without one.

    A residue formed from several (the chromophore CRO) has no single parent.

    Examples
    --------
    >>> [ALPHABET[aatype(name)] for name in ("GLY", "MSE", "SEP", "DAL", "CRO", "UNK")]
    ['G', 'M', 'S', 'A', 'X', 'X']
    """
    seen = []
    while res_name not in _STANDARD and res_name not in seen:
        seen.append(res_name)
        res_name = _PARENTS.get(res_name) or _ccd_parent(res_name)
    return _STANDARD.get(res_name, UNKNOWN)


@cache
def _components() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """Return the names of all amino acids, nucleotides and saccharides of the CCD."""
    from biotite.structure import info

    return (
        frozenset(map(str, info.amino_acid_names())),
        frozenset(map(str, info.nucleotide_names())),
        frozenset(map(str, info.carbohydrate_names())),
    )


def _ccd_parent(res_name: str) -> str:
    """Return the parent by ``mon_nstd_parent_comp_id``, or by ``one_letter_code`` (D-amino acids), or "UNK"."""
    from biotite.structure import info

    column = info.get_from_ccd("chem_comp", res_name, "mon_nstd_parent_comp_id")
    parents = [] if column is None else str(column.as_array(str, "")[0]).replace(" ", "").split(",")
    if len(parents) > 1:
        return "UNK"
    if parents and parents[0]:
        return parents[0]
    letter = info.one_letter_code(res_name)
    return THREE_LETTER[ALPHABET.index(letter)] if letter and letter in ALPHABET else "UNK"
