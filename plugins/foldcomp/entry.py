"""Foldcomp entries (``.fcz``), one compressed protein chain each, to PDB text.

An entry has the coordinates of some anchor residues and torsion angles between them. Refused is what cannot be
restored: bytes that do not fit the counts of the header, and chains with gaps, which decompress to distorted backbones
with atoms more than 10 Å from their places (foldcomp 1.0.0, 2026-11-22).

References
----------
Kim, Mirdita & Steinegger, Foldcomp: a library and format for compressing and indexing large protein structure sets,
Bioinformatics 2023.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import NoReturn

import numpy as np
from protgraph_plugins.foldcomp.decoder import decompress

from protgraph.errors import StructureFileError

__all__ = ["MAGIC", "FoldcompHeader", "foldcomp_text", "parse_foldcomp_header"]

MAGIC = b"FCMP"
"""First bytes of an entry."""

# struct CompressedFileHeader of src/foldcomp.h; then mins and widths of the six backbone angles
_HEADER = struct.Struct("<4HBc2xI2c2xI12f")
_START = len(MAGIC) + _HEADER.size
_ANCHOR = 36  # bytes: three atoms
_TERMINUS = 13  # bytes: OXT
# Torsions that place the other heavy atoms of a residue, by its number in src/utility.h, ALA to VAL; none for others.
_TORSIONS = np.zeros(32, int)
_TORSIONS[:20] = (2, 8, 5, 5, 3, 6, 6, 1, 7, 5, 5, 6, 5, 8, 4, 3, 4, 11, 9, 4)
_ROW = 81  # bytes of an ATOM record with its end of line
_BONDS = (1.4581, 1.5281, 1.3311)  # Å: N–CA, CA–C, C–N of src/foldcomp.h
_STRETCH = 0.1  # relative; at most 0.07 in continuous chains, and 0.2 to 0.6 in all chains with a gap that were tried


@dataclass(frozen=True)
class FoldcompHeader:
    """Header of a foldcomp entry.

    Parameters
    ----------
    residues, atoms : int
        Numbers of residues and atoms that were compressed. Atoms are counted modulo 65536.
    first_residue : int
        Number of the first residue; the others follow without gaps.
    first_atom : int
    anchors : int
        Anchor residues, with the first and the last.
    chain : str
    torsions : int
        Torsion angles of side chains.
    title : str
    """

    residues: int
    atoms: int
    first_residue: int
    first_atom: int
    anchors: int
    chain: str
    torsions: int
    title: str

    @property
    def anchor_end(self) -> int:
        """Return the place of the title in the entry."""
        return _START + 4 * self.anchors

    @property
    def backbone_start(self) -> int:
        """Return the place of the angles of the backbone, 8 bytes per residue."""
        return self.anchor_end + len(self.title) + _ANCHOR * max(self.anchors, 2) + _TERMINUS

    @property
    def size(self) -> int:
        """Return the bytes of the entry: 8 + 1 per residue, 1 per torsion, two numbers for the scale of B factors."""
        return self.backbone_start + 9 * self.residues + self.torsions + 8


def parse_foldcomp_header(entry: bytes, path: str | os.PathLike[str] = "content") -> FoldcompHeader:
    """Return the header of a foldcomp entry, checked against the bytes.

    Raises
    ------
    StructureFileError
        The entry is cut off, or numbers in it do not fit each other.
    """
    if len(entry) < _START or not entry.startswith(MAGIC):
        _refuse(path, f"{len(entry)} bytes", f"an entry has more than {_START}, and begins {MAGIC!r}")
    residues, atoms, first, first_atom, anchors, chain, torsions, _, _, length, *scale = _HEADER.unpack_from(
        entry, len(MAGIC)
    )
    begin = _START + 4 * anchors
    header = FoldcompHeader(
        residues=residues,
        atoms=atoms,
        first_residue=first if first < 2**15 else first - 2**16,  # stored without a sign
        first_atom=first_atom,
        anchors=anchors,
        chain=chain.decode("latin-1"),
        torsions=torsions,
        title=entry[begin : begin + min(length, len(entry))].decode("latin-1"),
    )
    if len(entry) not in (header.size, header.size + 1):  # entries of a database end with a zero byte
        _refuse(path, f"{len(entry)} bytes", f"its header gives {header.size}")
    if residues < 2 or anchors < 2:
        _refuse(path, f"{residues} residues and {anchors} anchors", "foldcomp restores chains of 2 or more")
    if not np.isfinite(scale).all():
        _refuse(path, "scales of angles that are not finite", "the file is damaged")
    _check_anchors(entry, header, path)
    _check_torsions(entry, header, path)
    return header


def _check_anchors(entry: bytes, header: FoldcompHeader, path: str | os.PathLike[str]) -> None:
    """Refuse anchors that do not increase from the first to the last residue; those of two residues may be equal."""
    anchors = np.frombuffer(entry, "<i4", header.anchors, _START)
    last = header.residues - 1
    least_step = 0 if header.residues == 2 else 1
    if anchors[0] != 0 or anchors[-1] != last or (np.diff(anchors) < least_step).any():
        _refuse(path, f"anchors at residues {anchors.tolist()}", f"they increase from 0 to {last}")


def _check_torsions(entry: bytes, header: FoldcompHeader, path: str | os.PathLike[str]) -> None:
    """Refuse another number of side-chain torsions than that of the residue types."""
    backbone = np.frombuffer(entry, np.uint8, 8 * header.residues, header.backbone_start)
    expected = int(_TORSIONS[backbone[::8] >> 3].sum())
    if expected != header.torsions:
        _refuse(
            path,
            f"{header.torsions} torsions of side chains",
            f"its residues have {expected}. Residues lacked backbone atoms or had insertion codes when the chain was "
            "compressed",
        )


def foldcomp_text(entry: bytes, path: str | os.PathLike[str] = "content") -> tuple[str, tuple[str, ...]]:
    """Decompress a foldcomp entry.

    Residues have the numbers of the entry, also negative ones. All atoms of a residue have the B factor of its CA, as
    foldcomp stores them.

    Returns
    -------
    tuple
        The entry as PDB text, and notes on what foldcomp made up.

    Raises
    ------
    MissingExtraError
        foldcomp is not installed.
    StructureFileError
        The entry is damaged, foldcomp fails to decompress it, or the chain had gaps when it was compressed.
    """
    header = parse_foldcomp_header(entry, path)
    rows = _atom_rows(decompress(_with_plain_numbers(entry, header), path), path)
    numbers = _values(rows[:, 22:26])
    if numbers[0] != 1 or numbers[-1] != header.residues or (np.diff(numbers) > 1).any():
        _refuse(path, f"{len(np.unique(numbers))} decompressed residues", f"its header gives {header.residues}")
    _check_bonds(rows, numbers, header, path)
    rows[:, 22:26] = _number_columns(np.arange(header.residues) + header.first_residue, path)[numbers - 1]
    placed = max(0, len(rows) - header.atoms)
    notes = (f"foldcomp placed {placed} atoms that were not in the compressed structure",) if placed else ()
    return _title_records(header.title) + rows.tobytes().decode("ascii") + "END\n", notes


def _refuse(path: str | os.PathLike[str], found: str, allowed: str, fix: str = "the structure again") -> NoReturn:
    raise StructureFileError(f"{path}: invalid foldcomp entry: {found}; {allowed}. Compress {fix}.")


def _with_plain_numbers(entry: bytes, header: FoldcompHeader) -> bytes:
    """Return the entry with numbers from 1 and without a title: foldcomp moves columns for other numbers."""
    fields = list(_HEADER.unpack_from(entry, len(MAGIC)))
    fields[2], fields[3], fields[9] = 1, 1, 0
    title_end = header.anchor_end + len(header.title)
    return MAGIC + _HEADER.pack(*fields) + entry[_START : header.anchor_end] + entry[title_end : header.size]


def _title_records(title: str) -> str:
    """Return the TITLE records of PDB files."""
    text = "".join(letter if letter.isprintable() else " " for letter in title)
    parts = [text[i : i + 69] for i in range(0, len(text), 69)]
    return "".join(f"TITLE   {n if n > 1 else '':>2}{' ' * (n > 1)}{part}\n" for n, part in enumerate(parts, 1))


def _atom_rows(text: bytes, path: str | os.PathLike[str]) -> np.ndarray:
    """Return the ATOM records as ``(A, 81)`` bytes."""
    begin, end = text.find(b"ATOM  "), text.rfind(b"TER   ")
    block = text[max(begin, 0) : max(end, 0)]
    rows = np.frombuffer(block, np.uint8, len(block) // _ROW * _ROW).reshape(-1, _ROW).copy()
    if not block or len(block) % _ROW or (rows[:, -1] != ord("\n")).any():
        _refuse(path, "decompressed coordinates that do not fit the columns of PDB files", "−999.999 to 9999.999 Å fit")
    return rows


def _values(columns: np.ndarray) -> np.ndarray:
    """Return the ``(A,)`` int64 values of right-aligned digits."""
    digits = np.where(columns == ord(" "), 0, columns - np.uint8(ord("0"))).astype(int)
    return digits @ 10 ** np.arange(columns.shape[1])[::-1]


def _number_columns(numbers: np.ndarray, path: str | os.PathLike[str]) -> np.ndarray:
    """Return residue numbers as ``(N, 4)`` bytes."""
    if numbers[0] < -999 or numbers[-1] > 9999:
        _refuse(path, f"residues {numbers[0]} to {numbers[-1]}", "−999 to 9999 fit PDB files")
    return np.frombuffer("".join(f"{n:4d}" for n in numbers.tolist()).encode(), np.uint8).reshape(-1, 4)


def _check_bonds(rows: np.ndarray, numbers: np.ndarray, header: FoldcompHeader, path: str | os.PathLike[str]) -> None:
    """Raise if bonds of the backbone are stretched, as between anchors on both sides of a gap."""
    names = np.frombuffer(rows[:, 12:16].tobytes(), "S4")
    atom_row = np.full((header.residues, 3), -1)
    for column, name in enumerate((b" N  ", b" CA ", b" C  ")):
        atoms = np.flatnonzero(names == name)
        atom_row[numbers[atoms] - 1, column] = atoms
    if (atom_row < 0).any():
        _refuse(path, "decompressed residues without N, CA and C", "the file is damaged")
    try:
        coordinates = (
            np.frombuffer(rows[atom_row.ravel(), 30:54].tobytes(), "S8").astype(float).reshape(-1, 3)
        )  # (3 N, 3)
    except ValueError:  # foldcomp writes other characters for NaN and infinity
        _refuse(path, "decompressed coordinates that are not finite", "the file is damaged")
    length = np.linalg.norm(np.diff(coordinates, axis=0), axis=1)
    ideal = np.resize(_BONDS, len(length))
    stretched = np.flatnonzero(~(np.abs(length / ideal - 1) <= _STRETCH))  # also NaN
    if len(stretched):
        first, last = (header.first_residue + stretched[[0, -1]] // 3).tolist()
        _refuse(
            path,
            f"{len(stretched)} backbone bonds of impossible length, residues {first} to {last}",
            "the chain had gaps when it was compressed, and these coordinates are wrong",
            "its continuous parts one by one",
        )
