"""Files in the form of AlphaFold's, made from PDB entries: tests do not download models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from biotite.structure.io.pdb import PDBFile

import protgraph as pg

__all__ = ["write_predicted_file"]


def write_predicted_file(path: Path, entry: Path, *, tail: tuple[float, ...] = (), title: str = "") -> None:
    """Write a PDB file with a pLDDT of 95, and of ``tail`` for the last residues, in place of the B factors.

    Parameters
    ----------
    path : Path
        Written file.
    entry : Path
        Structure file with the coordinates. Molecules besides the protein are left out.
    tail : tuple of float
        pLDDT of the last residues, 0 to 100.
    title : str
        Text of the TITLE record.
    """
    residues = pg.clean(pg.load_structure(entry))
    plddt = np.full(len(residues), 95.0, dtype=np.float32)  # (N,)
    if tail:
        plddt[-len(tail) :] = tail
    atoms = pg.to_atom_array(residues)
    atoms.set_annotation("b_factor", plddt[residues.atom_residue])
    atoms.set_annotation("occupancy", np.ones(len(atoms), dtype=np.float32))
    file = PDBFile()
    file.set_structure(atoms)
    lines = [f"TITLE     {title}", *file.lines, "END"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
