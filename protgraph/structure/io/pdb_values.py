"""Write PDB files with values in the B factors: records of a PDB file as they are, or new records of atoms.

References
----------
wwPDB file format 3.3, and hybrid-36, cci.lbl.gov/hybrid_36.
"""

# Not biotite: it refuses atoms without B factors and writes no TER records (biotite 1.6.0, 2026-11-26).

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from biotite.structure import AtomArray

from protgraph.errors import OptionError, StructureFileError
from protgraph.structure.io.pdb_lines import PDBText, model_lines, parse_numbers
from protgraph.structure.io.polymers import Polymers
from protgraph.structure.io.repair import shift_long_serials
from protgraph.structure.io.unit_cell import edges_and_angles
from protgraph.wording import count_noun

__all__ = ["REMARK", "WrittenText", "edit_pdb", "write_pdb"]

_WIDTH = 80
_ATOM = ("ATOM", "HETATM")
_WITH_SERIAL = ("ANISOU", "SIGATM", "SIGUIJ", "TER")  # and a serial number in the columns of that of atoms
_OF_MODEL = (*_ATOM, *_WITH_SERIAL, "MODEL", "ENDMDL")
# Records that precede REMARK (wwPDB file format 3.3).
_TITLE = ("HEADER", "OBSLTE", "TITLE", "SPLIT", "CAVEAT", "COMPND", "SOURCE", "KEYWDS", "EXPDTA", "NUMMDL", "MDLTYP")
_BEFORE = (*_TITLE, "AUTHOR", "REVDAT", "SPRSDE", "JRNL", "REMARK")
_COUNTS = ("MASTER", "NUMMDL")  # counts of records and models, which are not right after the change
REMARK = "REMARK  99"  # 6 to 99: free text
_LIMITS = (-99.99, 999.99)  # numbers of six columns with two decimals
_OF_SEQUENCE = 13  # residues in a SEQRES record
_LAST_NUMBER = 9999  # the largest residue number of four columns
_LAST_SERIAL = 99_999  # the largest decimal number of five columns
_SERIAL = re.compile(r" *\d+")
_HYBRID = re.compile(r"[A-Z][0-9A-Z]{4}|[a-z][0-9a-z]{4}")
_USE_CIF = "Give --structure a name that ends in .cif."


class WrittenText(NamedTuple):
    """A PDB file.

    ``changes``: what is written otherwise than in the source, one text each.
    """

    text: str
    changes: tuple[str, ...]


def edit_pdb(
    text: str, model: int, atoms: AtomArray, b_factor: np.ndarray, details: Sequence[str], where: str
) -> WrittenText:
    """Return a PDB file with one model and other B factors; all other columns and records stay as they are.

    Fields of atom records that other programs cannot read are replaced: occupancies that are blank, elements that are
    blank or none, and serial numbers beyond the five columns of the format. Records that these have shifted return to
    their columns.

    ``model``: model to keep, from 1. ``b_factor``: ``(A,)`` float.
    """
    _check_six_columns("value", b_factor, where)
    lines = list(_one_model(text.rstrip("\r\n"), model))
    rows = np.flatnonzero(PDBText.of("\n".join(lines)).is_atom).tolist()
    if len(rows) != len(b_factor):
        raise StructureFileError(f"{where}: {len(rows)} atom records in model {model}, but {len(b_factor)} were read.")

    # the records of atoms, in their columns
    in_columns = _shifted_records(text, model)
    changes: list[str] = []
    records = {}
    num_rewritten = 0
    values = zip(rows, atoms.element.tolist(), atoms.res_id.tolist(), b_factor.tolist(), strict=True)
    for number, (row, element, res_id, value) in enumerate(values):
        line = in_columns.get(number, lines[row])
        line = line.encode("ascii", "replace").decode()
        record = _edited_record(line.ljust(_WIDTH), element, value)
        records[row] = _with_residue_number(record, res_id)
        num_rewritten += records[row] != record
    if num_rewritten:
        changes.append(f"residue numbers after {_LAST_NUMBER} in {num_rewritten} atom records are hybrid-36")
    lines = [records.get(row, line) for row, line in enumerate(lines)]

    # serial numbers
    is_large = len(rows) > _LAST_SERIAL
    have_serials = all(_has_serial(record, is_large) for record in records.values())
    if in_columns or not have_serials:
        renumbered = _renumbered(lines, records.keys())
        lines = renumbered.lines
        changes += renumbered.changes
    return WrittenText(_with_header(lines, details), tuple(changes))


def _one_model(text: str, model: int) -> Iterator[str]:
    """Yield the lines of a file without the coordinates of other models."""
    lines, models = model_lines(text)
    begin, end = 0, 0
    if model <= len(models):
        begin, end = models[model - 1]
    ends = [i for i, line in enumerate(lines) if _is_end(line)]
    for i, line in enumerate(lines):
        is_of_other_model = line.upper().startswith(_OF_MODEL) and not begin <= i < end
        is_early_end = i in ends[:-1]
        is_count = line.startswith(_COUNTS)
        if not (is_of_other_model or is_early_end or is_count):
            yield line


def _is_end(line: str) -> bool:
    return line[:6].strip().upper() == "END"


def _shifted_records(text: str, model: int) -> dict[int, str]:
    """Return the atom records that a long serial number has shifted, in their columns, by their number in the model."""
    table, _ = PDBText.of(text).records(model)
    _, is_number = parse_numbers(table)
    has_coordinates = is_number[:3].all(axis=0)
    before = table.copy()
    shift_long_serials(table, np.flatnonzero(~has_coordinates))
    is_moved = (table != before).any(axis=1)
    moved = np.flatnonzero(is_moved).tolist()
    return {number: table[number].tobytes().decode("ascii") for number in moved}


def _edited_record(line: str, element: str, b_factor: float) -> str:
    """Return an atom record with a B factor, and an occupancy and an element that programs read."""
    occupancy, after_b_factor = line[54:60], line[66:]
    if not _is_number(occupancy):
        occupancy = "  1.00"
    if line[65] != " ":  # a B factor of more than six columns shifts the rest of the record
        after_b_factor = re.sub(r"^[0-9.]+", "", after_b_factor)
    after_b_factor = after_b_factor.ljust(_WIDTH - 66)
    if after_b_factor[10:12].strip().upper() != element:
        after_b_factor = f"{after_b_factor[:10]}{element:>2}  {after_b_factor[14:]}"
    return f"{line[:6].upper()}{line[6:54]}{occupancy}{b_factor:6.2f}{after_b_factor}"


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _with_residue_number(record: str, number: int) -> str:
    """Return an atom record with a residue number after 9999 as hybrid-36; other numbers stay as they are."""
    if number <= _LAST_NUMBER:
        return record
    code = _in_width(number, 4)
    if record[22:26] == code:
        return record
    insertion = " " if record[26].isdigit() else record[26]  # the fifth digit
    return f"{record[:22]}{code}{insertion}{record[27:]}"


class _Renumbered(NamedTuple):
    """Lines with other serial numbers, and what is written otherwise."""

    lines: list[str]
    changes: list[str]


def _renumbered(lines: Sequence[str], atom_rows: Collection[int]) -> _Renumbered:
    """Count the serial numbers of records from 1.

    The numbers of CONECT records would be those of other atoms: these records are left out.
    """
    renumbered = []
    serial = 0
    num_connected = 0
    for i, line in enumerate(lines):
        record = line.upper()
        if record.startswith("CONECT"):
            num_connected += 1
        elif i in atom_rows:
            serial += 1
            name = "HETATM" if line.startswith("HETATM") else "ATOM  "
            renumbered.append(f"{name}{_serial(serial)} {line[12:]}")
        elif record.startswith(_WITH_SERIAL):
            if record.startswith("TER"):
                serial += 1
            name = record[:6].ljust(6)
            renumbered.append(f"{name}{_serial(serial)}{_after_serial(line)}".rstrip())
        else:
            renumbered.append(line)
    changes = ["serial numbers that do not fit into their columns: all are counted from 1"]
    if num_connected:
        changes.append(f"{count_noun(num_connected, 'CONECT record')} left out, which refer to other serial numbers")
    return _Renumbered(renumbered, changes)


def _has_serial(line: str, is_large: bool) -> bool:
    """Return True if a record has its name and a serial number in their columns."""
    serial = line[6:11]
    is_number = _SERIAL.fullmatch(serial) is not None
    if is_large and not is_number:
        is_number = _HYBRID.fullmatch(serial) is not None
    has_name = line[:6] in ("ATOM  ", "HETATM")
    return has_name and is_number and line[11] == " "


def _after_serial(line: str) -> str:
    """Return a record from column 12 on, at its place also after a longer serial number."""
    long = re.match(r"\d{6,}", line[6:])
    return line[11:] if long is None else line[6 + long.end() :]


def _serial(number: int) -> str:
    return _in_width(number, 5)


def _in_width(number: int, width: int) -> str:
    """Return a number in some columns: decimal, or hybrid-36 where it does not fit.

    Examples
    --------
    >>> _in_width(9999, 4), _in_width(10000, 4), _in_width(1223056, 4)
    ('9999', 'A000', 'a000')
    """
    if number < 10**width:
        return f"{number:{width}}"
    letters = 26 * 36 ** (width - 1)  # how many numbers begin with a capital letter
    remainder = number - 10**width
    is_lower = remainder >= letters
    if is_lower:
        remainder -= letters
    remainder += 10 * 36 ** (width - 1)
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    text = ""
    for _ in range(width):
        remainder, digit = divmod(remainder, 36)
        text = digits[digit] + text
    return text.lower() if is_lower else text


def write_pdb(
    atoms: AtomArray, b_factor: np.ndarray, details: Sequence[str], where: str, *, polymers: Polymers
) -> WrittenText:
    """Return atoms as a PDB file with B factors, all alternate locations, and SEQRES and TER records of the polymers.

    Atoms without coordinates are left out. Serial numbers after 99999 are hybrid-36.

    ``b_factor``: ``(A,)`` float.
    """
    # contract: every atom that is written has coordinates and fits into its columns
    changes = []
    has_coordinates = np.isfinite(atoms.coord).all(axis=1)
    num_left_out = int((~has_coordinates).sum())
    if num_left_out:
        changes.append(f"{count_noun(num_left_out, 'atom')} without coordinates left out")
    rows = np.flatnonzero(has_coordinates)
    atoms = atoms[rows]
    b_factor = b_factor[rows]
    _check_columns(atoms, where)
    _check_six_columns("value", b_factor, where)
    _check_six_columns("occupancy", atoms.occupancy, where)
    # the last atom of each polymer, which a TER record follows
    asym = polymers.asym[rows]
    position = polymers.position[rows]
    polymer_atoms = np.flatnonzero(position > 0).tolist()
    last_atom = {str(asym[i]): i for i in polymer_atoms}
    ends = set(last_atom.values())

    lines = _sequence_records(atoms, asym, position)
    if atoms.box is not None:
        lines.append(_cell(atoms.box))
    serial = 0
    for i, atom in enumerate(_rows(atoms, b_factor)):
        serial += 1
        lines.append(f"{atom.record}{_serial(serial)} {atom.name}{atom.residue}{atom.numbers}")
        if i in ends:
            serial += 1
            lines.append(f"TER   {_serial(serial)}      {atom.residue[1:]}")
    if serial > _LAST_SERIAL:
        changes.append(f"{serial} serial numbers: those after {_LAST_SERIAL} are hybrid-36")
    return WrittenText(_with_header([*lines, "END"], details), tuple(changes))


class _Row(NamedTuple):
    """An atom as parts of a record: columns 1–6, 13–16, 17–27 and 28–80."""

    record: str
    name: str
    residue: str
    numbers: str


def _rows(atoms: AtomArray, b_factor: np.ndarray) -> Iterator[_Row]:
    columns = (
        atoms.hetero,
        atoms.atom_name,
        atoms.altloc_id,
        atoms.res_name,
        atoms.chain_id,
        atoms.res_id,
        atoms.ins_code,
        atoms.element,
        atoms.coord,
        atoms.occupancy,
        b_factor,
    )
    values_of_columns = [column.tolist() for column in columns]
    for row in zip(*values_of_columns, strict=True):
        hetero, name, altloc, res_name, chain, res_id, code, element, (x, y, z), occupancy, b = row
        # The element of a name ends in column 14, so names of four characters and those of calcium begin in column 13.
        is_indented = len(element) < 2 and len(name) < 4
        padded = f" {name:3}" if is_indented else f"{name:4}"
        residue = f"{altloc or ' '}{res_name:>3} {chain or ' '}{res_id:4}{code or ' '}"
        numbers = f"   {x:8.3f}{y:8.3f}{z:8.3f}{occupancy:6.2f}{b:6.2f}          {element:>2}  "
        yield _Row("HETATM" if hetero else "ATOM  ", padded, residue, numbers)


def _sequence_records(atoms: AtomArray, asym: np.ndarray, position: np.ndarray) -> list[str]:
    """Return SEQRES records, by which mkdssp recognizes modified residues in HETATM records."""
    sequences: dict[str, dict[tuple[bytes, int], str]] = {}  # chain → molecule and place of a residue → its name
    is_polymer = position > 0
    columns = (atoms.chain_id, asym, position, atoms.res_name)
    for chain, molecule, place, name in zip(*(column[is_polymer].tolist() for column in columns), strict=True):
        sequences.setdefault(chain, {}).setdefault((molecule, place), name)
    records = []
    for chain, residues in sequences.items():
        names = [f"{residues[key]:>3}" for key in sorted(residues)]
        for number, first in enumerate(range(0, len(names), _OF_SEQUENCE), 1):
            part = " ".join(names[first : first + _OF_SEQUENCE])
            records.append(f"SEQRES {number % 1000:3} {chain or ' '} {len(names):4}  {part}".ljust(_WIDTH))
    return records


def _cell(box: np.ndarray) -> str:
    a, b, c, alpha, beta, gamma = edges_and_angles(box)
    return f"CRYST1{a:9.3f}{b:9.3f}{c:9.3f}{alpha:7.2f}{beta:7.2f}{gamma:7.2f} P 1           1          "


def _with_header(lines: Sequence[str], details: Sequence[str]) -> str:
    """Return lines as text, with the description of the B factors, and with HEADER, which programs require."""
    texts = [REMARK]
    for detail in details:
        plain = detail.encode("ascii", "replace").decode()
        width = _WIDTH - len(REMARK) - 1
        for start in range(0, len(plain), width):
            texts.append(f"{REMARK} {plain[start : start + width]}")
    remarks = [text.ljust(_WIDTH) for text in texts]

    first = 0  # line that follows the remarks
    for i, line in enumerate(lines):
        if not line.startswith(_BEFORE):
            first = i
            break
    has_header = bool(lines) and lines[0].startswith("HEADER")
    header = [] if has_header else ["HEADER".ljust(_WIDTH)]
    written = [*header, *lines[:first], *remarks, *lines[first:]]
    return "\n".join(written) + "\n"


def _check_six_columns(name: str, values: np.ndarray, where: str) -> None:
    """Raise if numbers with two decimals have more than six columns."""
    low, high = _LIMITS
    rounded = values.round(2)
    outside = values[(rounded < low) | (rounded > high)]
    if len(outside):
        kind = "B factors" if name == "value" else "occupancies"
        raise OptionError(f"{where}: {name} {outside[0]:.6g}. PDB files hold {kind} from {low} to {high}. {_USE_CIF}")


def _check_columns(atoms: AtomArray, where: str) -> None:
    """Raise if identifiers or numbers are longer than the columns of the format."""
    limits = {
        "chain id": (atoms.chain_id, 1),
        "residue name": (atoms.res_name, 3),
        "atom name": (atoms.atom_name, 4),
        "residue number": (atoms.res_id.astype(str), 4),
        "insertion code": (atoms.ins_code, 1),
        "alternate location": (atoms.altloc_id, 1),
    }
    for name, (column, width) in limits.items():
        values, first = np.unique(column, return_index=True)
        in_order = values[np.argsort(first)].tolist()
        long = [value for value in in_order if len(value) > width or not value.isascii()]
        if long:
            chains = len(np.unique(atoms.chain_id))
            raise OptionError(
                f"{where}: {name} {long[0]!r} ({chains} chains). PDB files have {width} ASCII "
                f"character{'s' * (width > 1)} for it. {_USE_CIF}"
            )
    largest = atoms.coord.max(initial=0)
    smallest = atoms.coord.min(initial=0)
    if largest >= 9999.9995 or smallest <= -999.9995:
        raise OptionError(f"{where}: coordinates beyond -999.999 to 9999.999 Å do not fit into PDB files. {_USE_CIF}")
    longest_edge = 0.0
    if atoms.box is not None:
        longest_edge = np.linalg.norm(atoms.box, axis=1).max()
    if longest_edge >= 99_999.9995:
        raise OptionError(f"{where}: edges of the unit cell beyond 99999.999 Å do not fit into PDB files. {_USE_CIF}")
