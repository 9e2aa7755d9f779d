"""Element symbols of atoms, and inference from atom names where a file has none."""

# Not biotite's infer_elements: "CA  " of calcium is carbon (1.6.0). Not gemmi: "CA  " of a glycine is calcium (0.7.5).

from __future__ import annotations

import re
from functools import cache

import numpy as np

from protgraph.structure.residues.alphabet import AMINO_ACID_NAMES, residue_kind
from protgraph.structure.residues.atoms import ELEMENTS

__all__ = [
    "UNKNOWN_ELEMENT",
    "complete_elements",
    "contradicts_residue",
    "element_of_name",
    "element_symbols",
    "infer_element",
    "is_dummy_symbol",
]

UNKNOWN_ELEMENT = "X"
"""Symbol of an atom of unknown element (wwPDB)."""

_SYMBOLS = frozenset(ELEMENTS) | {"D", "T", UNKNOWN_ELEMENT}
_AMINO_ACIDS = frozenset(AMINO_ACID_NAMES) | {"UNK"}
_ORGANIC = frozenset("HDCNOSP")  # elements of amino acids, nucleotides and water
_DUMMY = re.compile(r"Q|LP|EP\d*$|PS\d+$|D[CNOS]")
_DUMMY_SYMBOLS = ("PS", "LP", "EP", "Q", "QQ", "DU")
_LETTERS = frozenset("HDCNOSPAX")  # atoms of amino acids begin with these; A and X: amide N or O


def element_symbols(columns: np.ndarray) -> np.ndarray:
    """Return the element symbols of columns 77–78, upper case and without blanks.

    ``columns``: ``(A, 2)`` uint8, ASCII. Returns ``(A,)`` "<U2"; "" if the columns do not hold a symbol, e.g. the line
    numbers of files before 1996.
    """
    codes, index = np.unique(np.ascontiguousarray(columns).view("<u2")[:, 0], return_inverse=True)
    texts = [int(code).to_bytes(2, "little").decode("ascii") for code in codes]
    return np.array(list(map(_symbol, texts)), "U2")[index]


@cache
def _symbol(text: str) -> str:
    """Return the symbol of two characters in upper case, "" if they are none; "cA" is none."""
    letters = text.strip()
    symbol = letters.upper()
    is_symbol = len(text) <= 2 and symbol in _SYMBOLS and letters in (symbol, symbol.lower(), symbol.capitalize())
    return symbol if is_symbol else ""


def complete_elements(
    symbols: np.ndarray, res_name: np.ndarray, atom_name: np.ndarray, *, index: np.ndarray | None = None
) -> tuple[np.ndarray, int]:
    """Return element symbols in upper case; those that are no elements of the residue are inferred from names.

    ``symbols``, ``res_name``, ``atom_name``: ``(A,)`` str, of a file in which names have no columns, e.g. mmCIF.
    ``index``: ``(A,)`` integer, the symbol of each atom; ``symbols`` are then distinct texts, ``(texts,)``. Returns
    ``elements``: ``(A,)`` "<U2".

    Examples
    --------
    >>> elements, inferred = complete_elements(*np.array([["Zn", "17", "?"], ["ZN", "GLY", "CA"], ["ZN", "CA", "CA"]]))
    >>> elements.tolist(), inferred
    (['ZN', 'C', 'CA'], 2)
    """
    if index is None:
        symbols, index = np.unique(symbols, return_inverse=True)
    known = list(map(_symbol, symbols.tolist()))
    elements = np.array(known, "U2")[index]
    is_plain = np.array([symbol in _ORGANIC for symbol in known], bool)[index]
    if is_plain.all():  # as in most files
        return elements, 0
    rows = np.flatnonzero(~is_plain)
    some = elements[rows]
    rows = rows[(some == "") | contradicts_residue(some, res_name[rows])]
    if len(rows):
        written = symbols[index[rows]]
        names = zip(res_name[rows].tolist(), atom_name[rows].tolist(), strict=True)
        elements[rows] = [element_of_name(residue, atom) for residue, atom in names]
        elements[rows[is_dummy_symbol(written)]] = UNKNOWN_ELEMENT
    return elements, len(rows)


def contradicts_residue(symbols: np.ndarray, res_name: np.ndarray) -> np.ndarray:
    """Return True for elements that an amino acid cannot have, ``(A,)`` bool.

    Some programs write the first two letters of the atom name: "CA" for CA, "CD" for CD1. Unknown elements count too.

    ``symbols``: ``(A,)`` "<U2", upper case. ``res_name``: ``(A,)`` str. Other residues than the twenty amino acids,
    their protonation states and UNK contradict nothing.

    Examples
    --------
    >>> contradicts_residue(np.array(["CA", "C", "CA"]), np.array(["GLY", "GLY", "CA"])).tolist()
    [True, False, False]
    """
    letters = symbols.view(np.uint32).reshape(-1, 2)
    rows = np.flatnonzero((letters[:, 1] != 0) | (letters[:, 0] == ord(UNKNOWN_ELEMENT)))
    wrong = np.zeros(len(symbols), bool)
    if len(rows):
        wrong[rows] = [
            symbol != "SE" and name in _AMINO_ACIDS
            for symbol, name in zip(symbols[rows].tolist(), res_name[rows].tolist(), strict=True)
        ]
    return wrong


@cache
def element_of_name(res_name: str, name: str) -> str:
    """Infer the element from a name without columns: by the dictionary, as an ion, or by the first letter.

    The dictionary of atoms, 600 MB in biotite's memory, is read only for names that can begin with a two-letter symbol.
    """
    letters = name.lstrip("0123456789'\"*").upper()
    if _is_dummy(res_name, letters):
        return UNKNOWN_ELEMENT
    if letters[:1] in _ORGANIC and (_is_polymer(res_name) or letters[:2] not in _SYMBOLS):
        return letters[:1]
    listed = _dictionary_element(res_name, name)
    if listed:
        return listed
    return name.upper() if name == res_name and name.upper() in _SYMBOLS else infer_element(res_name, f" {name:<3}")


@cache
def infer_element(res_name: str, name: str) -> str:
    """Infer the element of an atom from its name in columns 13–16.

    In amino acids, nucleotides and water the first letter is the element, also of misplaced names. Names of dummy atoms
    in amino acids have none: pseudoatoms of proton groups, QB (CYANA; Markley et al. 1998), PS1 (PyMOL), lone pairs LPA
    and Drude particles DCA (CHARMM), and those that begin as no atom of an amino acid does. In other molecules a
    two-letter symbol at the first column counts if the Chemical Component Dictionary does not have another element for
    this atom.

    Examples
    --------
    >>> [infer_element("GLY", " CA "), infer_element("CA", "CA  "), infer_element("LEU", "HD11")]
    ['C', 'CA', 'H']
    """
    letters = name.strip().lstrip("0123456789'\"*").upper()
    first, pair = letters[:1], letters[:2]
    if _is_dummy(res_name, letters):
        return UNKNOWN_ELEMENT
    if first in _ORGANIC and _is_polymer(res_name):
        return first
    if _begins_with_pair(name, pair):
        known = _dictionary_element(res_name, name.strip()) if first in _ORGANIC else ""
        return known or pair
    return next((symbol for symbol in (first, pair) if symbol in _SYMBOLS), UNKNOWN_ELEMENT)


def _begins_with_pair(name: str, pair: str) -> bool:
    """Return True if a two-letter symbol is at the first column of a name."""
    is_symbol = len(pair) == 2 and pair in _SYMBOLS
    return is_symbol and name[:1].isalpha() and not _is_long_hydrogen(name)


def is_dummy_symbol(symbols: np.ndarray) -> np.ndarray:
    """Return True for ``symbols (A,)`` that programs write for dummy atoms in place of an element, ``(A,)`` bool."""
    return np.isin(np.char.upper(np.char.strip(symbols)), _DUMMY_SYMBOLS)


def _is_dummy(res_name: str, letters: str) -> bool:
    """Return True for atoms of amino acids that are none, by the letters of their name."""
    if res_name in _AMINO_ACIDS:
        return _DUMMY.match(letters) is not None or letters[:1] not in _LETTERS
    return _DUMMY.match(letters) is not None and residue_kind(res_name) == "protein"


def _is_polymer(res_name: str) -> bool:
    return (res_name in _AMINO_ACIDS and res_name != "SEC") or residue_kind(res_name) in ("nucleic", "water")


def _is_long_hydrogen(name: str) -> bool:
    """Return True for hydrogens whose four characters begin at the first column, e.g. HD11 or HE2A."""
    return name[0] in "Hh" and not name[3:].isspace() and len(name) == 4


def _dictionary_element(res_name: str, name: str) -> str:
    """Return the element of an atom in the Chemical Component Dictionary, "" without an entry."""
    from biotite.structure import info

    atoms = info.get_from_ccd("chem_comp_atom", res_name)
    if atoms is None:
        return ""
    names = atoms["atom_id"].as_array(str).tolist()
    return str(atoms["type_symbol"].as_array(str)[names.index(name)]).upper() if name in names else ""
