"""Compare the atoms of a structure file as protgraph and biotite read them, attribute by attribute."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from biotite import InvalidFileError
from biotite.structure import AtomArray
from biotite.structure.io import pdb, pdbx

from protgraph.errors import ProtgraphError
from protgraph.structure.io import read_atoms
from protgraph.structure.io.elements import complete_elements
from protgraph.structure.io.sniff import FileContent, decode_text, read_file

__all__ = ["biotite_atoms", "compare_atoms", "differences"]

_FIELDS = ("b_factor", "occupancy")


def biotite_atoms(file: FileContent, model: int = 1) -> AtomArray:
    """Read a model with biotite, with all alternate locations.

    Elements are in upper case and inferred from atom names where a symbol is not an element, and "" is no alternate
    location, as in protgraph.
    """
    options = {"model": model, "altloc": "all", "extra_fields": list(_FIELDS)}
    if file.format == "pdb":
        atoms = pdb.PDBFile.read(io.StringIO(decode_text(file.data))).get_structure(**options)
    elif file.format == "bcif":
        atoms = pdbx.get_structure(pdbx.BinaryCIFFile.read(io.BytesIO(file.data)), use_author_fields=True, **options)
    else:
        parsed = pdbx.CIFFile.read(io.StringIO(decode_text(file.data)))
        atoms = pdbx.get_structure(parsed, use_author_fields=True, **options)
    is_none = np.isin(atoms.altloc_id, (" ", ".", "?"))
    atoms.set_annotation("altloc_id", np.where(is_none, "", atoms.altloc_id))
    atoms.set_annotation("element", complete_elements(atoms.element, atoms.res_name, atoms.atom_name)[0])
    return atoms


def compare_atoms(ours: AtomArray, theirs: AtomArray) -> list[str]:
    """Return one line for each attribute that differs: its name, the number of atoms, and the first values."""
    if len(ours) != len(theirs):
        return [f"{len(ours)} atoms, biotite {len(theirs)}"]
    lines = []
    names = sorted(theirs.get_annotation_categories())
    columns = {name: (ours.get_annotation(name), theirs.get_annotation(name)) for name in names}
    columns |= {f"coord[{i}]": (ours.coord[:, i], theirs.coord[:, i]) for i in range(3)}
    for name, (a, b) in columns.items():
        rows = np.flatnonzero((a != b) & ~((a != a) & (b != b)))
        if len(rows):
            lines.append(f"{name}: {len(rows)} atoms, e.g. {a[rows[0]]!s} and {b[rows[0]]!s} in biotite")
    boxes = [np.zeros(0) if atoms.box is None else atoms.box for atoms in (ours, theirs)]
    return lines if np.array_equal(*boxes) else [*lines, "box"]


def differences(path: str | Path, models: Sequence[int] = (1,)) -> list[str]:
    """Return the differences between protgraph and biotite on a file; an error of one of them is a difference.

    If both cannot read the file, there is no difference.
    """
    file = read_file(path)
    lines: list[str] = []
    for model in models:
        read: list[AtomArray | str] = []
        for reader in (lambda m: read_atoms(file, model=m).atoms, lambda m: biotite_atoms(file, m)):
            try:
                read.append(reader(model))
            except ProtgraphError as e:
                read.append(f"protgraph: {str(e).splitlines()[0]}")
            except (AttributeError, LookupError, TypeError, ValueError, InvalidFileError) as e:
                read.append(f"biotite: {type(e).__name__}")
        ours, theirs = read
        if isinstance(ours, str) or isinstance(theirs, str):
            failed = [one if isinstance(one, str) else f"{len(one)} atoms" for one in read]
            lines += [] if isinstance(ours, str) and isinstance(theirs, str) else ["; ".join(failed)]
        else:
            lines += compare_atoms(ours, theirs)
    return lines
