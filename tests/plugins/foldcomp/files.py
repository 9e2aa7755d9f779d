"""Foldcomp entries and databases of real chains, made with the foldcomp package."""

from __future__ import annotations

from pathlib import Path

import biotite.structure as struc
import foldcomp
import numpy as np
from biotite.structure.io.pdb import PDBFile

from protgraph.structure.io import read_atoms

CHAINS = ("134l", "1aki", "1amy", "1ete", "1y57")  # of pdb_core; the first chains have no gaps


def chain_atoms(path: Path):
    """Return the first protein chain of an entry, without gaps: its longest part of consecutive numbers."""
    atoms = read_atoms(path).atoms
    atoms = atoms[~atoms.hetero & (atoms.altloc_id == "") & (atoms.element != "H") & (atoms.ins_code == "")]
    atoms = atoms[struc.filter_canonical_amino_acids(atoms)]
    atoms = atoms[atoms.chain_id == atoms.chain_id[0]]
    complete = [r for r in np.unique(atoms.res_id) if {"N", "CA", "C"} <= set(atoms.atom_name[atoms.res_id == r])]
    parts = np.split(complete, np.flatnonzero(np.diff(complete) != 1) + 1)
    return atoms[np.isin(atoms.res_id, max(parts, key=len))]


def atom_lines(atoms) -> str:
    file = PDBFile()
    file.set_structure(atoms)
    return "".join(f"{line}\n" for line in file.lines if line.startswith("ATOM"))


def compress(lines: str, title: str = "") -> bytes:
    return foldcomp.compress(title, lines)


def write_database(path: Path, entries: list[tuple[str, bytes]], keys=None, order=None) -> Path:
    """Write entries as ``foldcomp compress --db`` does; ``order`` is their order in the file of entries."""
    keys = range(len(entries)) if keys is None else keys
    order = range(len(entries)) if order is None else order
    data, places = b"", {}
    for i in order:
        places[i] = len(data)
        data += entries[i][1] + b"\0"
    path.write_bytes(data)
    index = [f"{key}\t{places[i]}\t{len(entries[i][1]) + 1}\n" for i, key in enumerate(keys)]
    lookup = [f"{key}\t{name}\t0\n" for key, (name, _) in zip(keys, entries, strict=True)]
    Path(f"{path}.index").write_text("".join(index))
    Path(f"{path}.lookup").write_text("".join(lookup))
    Path(f"{path}.dbtype").write_bytes(b"\x0c\0\0\0")
    return path
