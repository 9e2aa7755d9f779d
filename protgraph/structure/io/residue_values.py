"""One value per residue: its place on the atoms of a structure file, and attribute files of ChimeraX.

References
----------
UCSF ChimeraX documentation, "Attribute assignment file format" (defattr).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from biotite.structure import AtomArray

from protgraph.file_io import write_text_file
from protgraph.structure.io.altloc import group_residues, name_blank_conformations
from protgraph.structure.io.polymers import Identity
from protgraph.structure.residues.residues import Residues

__all__ = [
    "ResidueValues",
    "has_other_identities",
    "identities_of_runs",
    "renamed_identities",
    "rows_of_runs",
    "write_defattr",
]

PERCENT = 100.0


@dataclass(frozen=True, eq=False)
class ResidueValues:
    """One value for each of N residues of a structure file.

    ``name``: name of the value, e.g. "p_site". ``chain``, ``res_id``, ``ins_code``, ``res_name``: ``(N,)`` identity of
    the residues, as in :class:`protgraph.Residues`. ``values``: ``(N,)`` float64; NaN for a residue without a value.
    ``is_probability``: True for values from 0 to 1. B factors are then 100 times the values, as pLDDT. ``classes``:
    names of the classes whose index is the value; empty for numbers. ``origin``: model, task and version, one text
    each, for the headers of written files.
    """

    name: str
    chain: np.ndarray
    res_id: np.ndarray
    ins_code: np.ndarray
    res_name: np.ndarray
    values: np.ndarray
    is_probability: bool = False
    classes: tuple[str, ...] = ()
    origin: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.values)

    @property
    def scale(self) -> float:
        """Factor from values to B factors: 100 for probabilities, else 1."""
        return PERCENT if self.is_probability else 1.0

    @property
    def b_factor(self) -> np.ndarray:
        """Values as they are written to B factors, ``(N,)`` float64: probabilities in percent."""
        return self.values * self.scale

    @property
    def class_lines(self) -> tuple[str, ...]:
        """Number and name of each class, one text each."""
        return tuple(f"class {number}: {name}" for number, name in enumerate(self.classes))

    @property
    def details(self) -> tuple[str, ...]:
        """Description of the written B factors, one short line each."""
        known = self.b_factor[~np.isnan(self.values)]
        scale = " in percent (100 x probability)" if self.is_probability else ""
        lines = [f"B factors are {self.name}{scale}", *self.origin, *self.class_lines]
        if len(known):
            lines.append(f"range {known.min():.6g} to {known.max():.6g}")
        return (*lines, f"{len(known)} residues have a value, all others have 0")


def write_defattr(path: str | Path, values: Mapping[str, ResidueValues]) -> Path:
    """Write an attribute file for ChimeraX, with one line per residue that has a value.

    The attribute has the name of the value and its numbers as predicted: probabilities from 0 to 1. With several
    files, residues of the first are those of model #1, and so on.

    ``path``: output file, ``.defattr``; an existing one is replaced. ``values``: file → values of its residues.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> columns = {"chain": ["H"], "res_id": [100], "ins_code": ["B"], "res_name": ["GLY"], "values": [0.5]}
    >>> values = ResidueValues("p_site", **{name: np.array(column) for name, column in columns.items()})
    >>> print(write_defattr(Path(mkdtemp()) / "a.defattr", {"1abc.pdb": values}).read_text().expandtabs(2), end="")
    # p_site
    # 1abc.pdb
    attribute: p_site
    match mode: 1-to-1
    recipient: residues
      /H:100B  0.5
    """
    path = Path(path)
    first = next(iter(values.values()))
    header = [f"attribute: {_attribute_name(first.name)}", "match mode: 1-to-1", "recipient: residues"]
    lines = [f"# {' '.join(text.split())}" for text in (first.name, *first.origin, *first.class_lines)]
    for number, (file, v) in enumerate(values.items(), 1):
        model = f"#{number}" if len(values) > 1 else ""
        name = " ".join(Path(file).name.split())
        lines.append(f"# {model} = {name}" if model else f"# {name}")
        if number == 1:
            lines += header
        keys = zip(v.chain.tolist(), v.res_id.tolist(), v.ins_code.tolist(), strict=True)
        for (chain, residue, code), value in zip(keys, v.values.tolist(), strict=True):
            if not np.isnan(value):
                of_chain = f"/{chain}" if chain else ""
                lines.append(f"\t{model}{of_chain}:{residue}{code}\t{_attribute_value(value, v)}")
    write_text_file(path, "\n".join(lines) + "\n")
    return path


def _attribute_value(value: float, values: ResidueValues) -> str:
    """Return a class as an integer and another value with a decimal point: ChimeraX takes the type from the text."""
    text = f"{value:.9g}"
    return text if values.classes or not text.lstrip("-").isdigit() else f"{text}.0"


def _attribute_name(name: str) -> str:
    """Return a name that ChimeraX accepts: letters, digits and underscores, and a lower-case letter first."""
    name = re.sub(r"\W", "_", name, flags=re.ASCII)
    return name if re.match(r"[a-z]", name) else f"value_{name}"


def identities_of_runs(atoms: AtomArray, start: np.ndarray) -> list[Identity]:
    """Return chain, number and insertion code of each run of atoms of one residue, as in the file.

    ``start``: ``(R,)`` int64, first atom of each run, see :func:`~protgraph.structure.io.polymers.run_starts`.
    """
    return _identities(atoms.chain_id[start], atoms.res_id[start], atoms.ins_code[start])


def has_other_identities(identity: Sequence[Identity], values: ResidueValues) -> bool:
    """Return True if a residue of the values has an identity that no run of the file has, e.g. chain "A-2"."""
    return not set(identity).issuperset(_identities(values.chain, values.res_id, values.ins_code))


def renamed_identities(
    atoms: AtomArray, start: np.ndarray, identity: Sequence[Identity], residues: Residues
) -> list[Identity]:
    """Return the identities that residues have after reading, e.g. with chain "A-2", of each run of atoms.

    A run has the identity of the residue with the same CA atom; runs without one have that of the latest run that had
    the same identity in the file.
    """
    at_position: dict[bytes, list[Identity]] = {}
    keys = _identities(residues.chain, residues.res_id, residues.ins_code)
    for key, position in zip(keys, residues.pos, strict=True):
        at_position.setdefault(position.tobytes(), []).append(key)
    run = np.repeat(np.arange(len(start)), np.diff(start, append=len(atoms)))
    at_ca: dict[int, Identity] = {}
    for atom in np.flatnonzero(atoms.atom_name == "CA").tolist():
        number = int(run[atom])
        found = at_position.get(atoms.coord[atom].astype(np.float32).tobytes())
        if found and number not in at_ca:
            at_ca[number] = found.pop(0)
    renamed: list[Identity] = []
    latest: dict[Identity, Identity] = {}
    for number, key in enumerate(identity):
        latest[key] = at_ca.get(number, latest.get(key, key))
        renamed.append(latest[key])
    return renamed


def rows_of_runs(
    atoms: AtomArray, start: np.ndarray, values: ResidueValues, identity: Sequence[Identity]
) -> np.ndarray:
    """Return the row in the values of the residue of each run of atoms, ``(R,)`` int64, −1 without one.

    Every atom of a residue has its value, of all alternate locations and hydrogens too. A molecule of another name with
    the same chain, number and insertion code has none, unless it is an alternate location.
    """
    row_of = {key: i for i, key in enumerate(_identities(values.chain, values.res_id, values.ins_code))}
    row = np.array([row_of.get(key, -1) for key in identity])
    same_name = atoms.res_name[start] == values.res_name[row]
    residue = group_residues(atoms.chain_id[start], atoms.res_id[start], atoms.ins_code[start])
    residue_of_atom = np.repeat(residue, np.diff(start, append=len(atoms)))
    ids = name_blank_conformations(atoms.altloc_id, atoms.atom_name, atoms.res_name, residue_of_atom)
    has_altloc = np.logical_or.reduceat(ids != "", start)
    return np.where(same_name | has_altloc, row, -1)


def _identities(chain: np.ndarray, res_id: np.ndarray, ins_code: np.ndarray) -> list[Identity]:
    return list(zip(chain.tolist(), res_id.tolist(), ins_code.tolist(), strict=True))
