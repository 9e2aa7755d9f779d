"""Write values per residue into the B factors of PDB records; all other columns and records stay as they are."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

import numpy as np
from biotite.structure import AtomArray
from biotite.structure.io import pdb

from protgraph.errors import OptionError, StructureFileError
from protgraph.structure.io.pdb_lines import PDBText, model_lines

__all__ = ["REMARK", "pdb_records", "replace_b_factors"]

_WIDTH = 80
_ATOM = ("ATOM", "HETATM")
_OF_MODEL = (*_ATOM, "ANISOU", "SIGATM", "SIGUIJ", "TER", "MODEL", "ENDMDL")
# Records that precede REMARK (wwPDB file format 3.3).
_TITLE = ("HEADER", "OBSLTE", "TITLE", "SPLIT", "CAVEAT", "COMPND", "SOURCE", "KEYWDS", "EXPDTA", "NUMMDL", "MDLTYP")
_BEFORE = (*_TITLE, "AUTHOR", "REVDAT", "SPRSDE", "JRNL", "REMARK")
_COUNTS = ("MASTER", "NUMMDL")  # counts of records and models, which are not right after the change
REMARK = "REMARK  99"  # 6 to 99: free text
_LIMITS = (-99.99, 999.99)  # B factors of six columns with two decimals
_USE_CIF = "Give --structure a name that ends in .cif."


def replace_b_factors(text: str, model: int, b_factor: np.ndarray, details: Sequence[str], where: str) -> str:
    """Return the text of a PDB file with one model and other B factors.

    Parameters
    ----------
    text : str
        Content of the file.
    model : int
        Model to keep, from 1.
    b_factor : ndarray
        ``(A,)`` float, one for each atom record of the model.
    details : sequence of str
        Lines of text for REMARK 99.
    where : str
        Name of the file in errors.

    Raises
    ------
    OptionError
        A B factor does not fit into six columns.
    StructureFileError
        The model has another number of atom records.
    """
    _check_range(b_factor, where)
    lines = list(_one_model(text.rstrip("\r\n"), model))
    rows = np.flatnonzero(PDBText.of("\n".join(lines)).is_atom).tolist()
    if len(rows) != len(b_factor):
        raise StructureFileError(f"{where}: {len(rows)} atom records in model {model}, but {len(b_factor)} were read.")
    for i, value in zip(rows, b_factor.tolist(), strict=True):
        line = lines[i].ljust(66)
        lines[i] = f"{line[:60]}{value:6.2f}{line[66:]}"
    first = next((i for i, line in enumerate(lines) if not line.startswith(_BEFORE)), 0)
    return "\n".join([*lines[:first], *_remarks(details), *lines[first:]]) + "\n"


def _one_model(text: str, model: int) -> Iterator[str]:
    """Yield the lines of a file without the coordinates of other models."""
    lines, models = model_lines(text)
    begin, end = models[model - 1] if model <= len(models) else (0, 0)
    last = len(lines) - 1 - next((i for i, line in enumerate(reversed(lines)) if _is_end(line)), 0)
    for i, line in enumerate(lines):
        is_other = line.upper().startswith(_OF_MODEL) and not begin <= i < end
        if not is_other and (i == last or not _is_end(line)) and not line.startswith(_COUNTS):
            yield line


def _is_end(line: str) -> bool:
    return line[:6].strip().upper() == "END"


def _remarks(details: Sequence[str]) -> list[str]:
    texts = [REMARK]
    for detail in details:
        plain = detail.encode("ascii", "replace").decode()
        width = _WIDTH - len(REMARK) - 1
        texts += [f"{REMARK} {plain[i : i + width]}" for i in range(0, len(plain), width)]
    return [text.ljust(_WIDTH) for text in texts]


def _check_range(b_factor: np.ndarray, where: str) -> None:
    low, high = _LIMITS
    outside = b_factor[(b_factor < low) | (b_factor > high)]
    if len(outside):
        raise OptionError(f"{where}: value {outside[0]:.6g}. PDB files hold B factors from {low} to {high}. {_USE_CIF}")


def pdb_records(atoms: AtomArray, where: str) -> str:
    """Return atoms as a PDB file, with alternate locations.

    Parameters
    ----------
    atoms : AtomArray
        With annotation ``altloc_id``.
    where : str
        Name of the file in errors.

    Raises
    ------
    OptionError
        The atoms do not fit into the columns of the format.
    """
    _check_columns(atoms, where)
    file = pdb.PDBFile()
    file.set_structure(atoms)
    written = io.StringIO()
    file.write(written)
    lines = [line for line in written.getvalue().splitlines() if not line.startswith("CRYST1")]
    cell = [line for line in written.getvalue().splitlines() if line.startswith("CRYST1")]
    lines = [f"{line[:16]}{a or ' '}{line[17:]}" for line, a in zip(lines, atoms.altloc_id.tolist(), strict=True)]
    return "\n".join([*cell, *lines, "END"])


def _check_columns(atoms: AtomArray, where: str) -> None:
    """Raise if identifiers are longer than the columns of the format."""
    limits = {"chain id": (atoms.chain_id, 1), "residue name": (atoms.res_name, 3), "atom name": (atoms.atom_name, 4)}
    limits["residue number"] = (atoms.res_id.astype(str), 4)
    limits["insertion code"] = (atoms.ins_code, 1)
    for name, (column, width) in limits.items():
        long = column[np.char.str_len(column) > width]
        if len(long):
            chains = len(np.unique(atoms.chain_id))
            raise OptionError(
                f"{where}: {name} {str(long[0])!r} ({chains} chains). PDB files have {width} "
                f"column{'s' * (width > 1)} for it. {_USE_CIF}"
            )
    if len(atoms) > 99_999:
        raise OptionError(f"{where}: {len(atoms)} atoms. PDB files have serial numbers up to 99999. {_USE_CIF}")
    if np.abs(atoms.coord).max() >= 9999.9995 or atoms.coord.min() <= -999.9995:
        raise OptionError(f"{where}: coordinates beyond -999.999 to 9999.999 Å do not fit into PDB files. {_USE_CIF}")
