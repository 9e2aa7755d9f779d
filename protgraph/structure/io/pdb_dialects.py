"""Identifiers of PDB records that programs write beyond the columns of the format; each reading is noted.

Not biotite: it ignores column 21 and takes the fifth digit of a residue number for an insertion code (biotite 1.6.0,
2026-11-22). Not gemmi: it reads every column 21 as part of the chain id, also in LYSH and NALA (gemmi 0.7.5,
2026-11-22).
"""

from __future__ import annotations

import numpy as np
from biotite.structure import AtomArray

from protgraph.structure.io.pdb_columns import parse_texts
from protgraph.structure.residues.alphabet import AMINO_ACID_NAMES, THREE_LETTER

__all__ = ["join_residue_numbers", "read_column_21"]

_NUMBER, _INS_CODE = 5, 26  # row of the residue number in the output of parse_numbers; column of the insertion code
_BLANK, _ZERO, _NINE = ord(" "), ord("0"), ord("9")

# Residues of which GROMOS, CHARMM and GROMACS write protonation states with a fourth letter: LYSH, HISE, ASPP, CYS2.
_WITH_FOURTH_LETTER = frozenset({"ARG", "ASP", "CYS", "GLU", "HIS", "LYS", "TYR", "UNK"})
_CHAIN_MARKERS = sorted(set(THREE_LETTER) - _WITH_FOURTH_LETTER)
_TERMINAL = sorted(f"{end}{name}" for end in "NC" for name in AMINO_ACID_NAMES)


def read_column_21(atoms: AtomArray, table: np.ndarray) -> list[str]:
    """Read column 21, which the format leaves blank, as part of a residue name or of the chain id, in place.

    Parameters
    ----------
    atoms : AtomArray
        With residue names of columns 18–20 and chain ids of column 22.
    table : ndarray
        ``(A, 80)`` uint8, ASCII, atom records.

    Returns
    -------
    list of str
        A note for each reading.

    Notes
    -----
    NALA and CALA are ALA at the ends of a chain (Amber, GROMACS). Other names lose their fourth letter. It belongs to
    the chain id if it follows one of the amino acids of which no program writes longer names (gemmi, Phenix and Coot
    write chain ids of two characters to columns 21–22).
    """
    rows = np.flatnonzero(table[:, 20] != _BLANK)
    if len(rows) == 0:
        return []
    names = np.ascontiguousarray(table[rows, 17:21]).view("S4")[:, 0].astype("U4")
    notes = []
    is_terminal = np.isin(names, _TERMINAL)
    if is_terminal.any():
        atoms.res_name[rows[is_terminal]] = [name[1:] for name in names[is_terminal].tolist()]
        found = ", ".join(dict.fromkeys(names[is_terminal].tolist()))
        notes.append(f"names of terminal residues read without N or C: {found}")
    rows = rows[~is_terminal]
    if np.isin(atoms.res_name[rows], _CHAIN_MARKERS).any():
        atoms.chain_id[rows] = parse_texts(table[rows, 20:22], 4)
        found = ", ".join(dict.fromkeys(atoms.chain_id[rows].tolist()))
        notes.append(f"chain ids of columns 21–22: {found}")
    return notes


def join_residue_numbers(table: np.ndarray, values: np.ndarray) -> list[str]:
    """Read residue numbers of five digits, of which the last one is in the column of the insertion code, in place.

    Parameters
    ----------
    table : ndarray
        ``(A, 80)`` uint8, ASCII, atom records.
    values : ndarray
        ``(6, A)``, output of :func:`~protgraph.structure.io.pdb_columns.parse_numbers`.

    Returns
    -------
    list of str
        A note if there are such numbers.

    Notes
    -----
    A digit after a number of four digits is an insertion code only if the record before or after such records has this
    number too, as the residue in whose place others are inserted.
    """
    digit, number = table[:, _INS_CODE], values[_NUMBER]
    rows = np.flatnonzero((digit >= _ZERO) & (digit <= _NINE))
    rows = rows[(number[rows] >= 1000) & (number[rows] <= 9999)]
    if len(rows) == 0:
        return []
    blocks = np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1)
    last = len(number) - 1
    joined = [
        block
        for block in blocks
        if (block[0] == 0 or number[block[0] - 1] != number[block[0]])
        and (block[-1] == last or number[block[-1] + 1] != number[block[-1]])
    ]
    if not joined:
        return []
    rows = np.concatenate(joined)
    number[rows] = 10 * number[rows] + (digit[rows] - _ZERO)
    digit[rows] = _BLANK
    return [f"residue numbers of five digits in {len(rows)} atom records, with the last one in column 27"]
