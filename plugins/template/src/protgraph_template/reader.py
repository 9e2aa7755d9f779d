"""Reader: a format of structure files of its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from biotite.structure import AtomArray

import protgraph as pg
from protgraph.errors import StructureFileError

__all__ = ["TemplateReader"]

FIRST = b"#template\n"


class TemplateReader(pg.Reader):
    """Reader of ``.template`` files: ``#template``, then chain, number, name and CA position (Å) of each residue."""

    suffixes = (".template",)

    def recognizes(self, content: bytes) -> bool:
        """Return True for the first line of the format."""
        return content.startswith(FIRST)

    def parse(self, content: bytes, path: str, model: int) -> pg.ParsedFile:
        """Return the CA atoms; a file has one model."""
        rows = [line.split() for line in content.decode().splitlines()[1:]]
        atoms = AtomArray(len(rows))
        try:
            chain, number, name, *position = zip(*rows, strict=True)
            atoms.coord = np.array(position, dtype=np.float32).T
            atoms.res_id = np.array(number, dtype=int)
        except ValueError as e:
            raise StructureFileError(f"{path}: not lines of chain, number, residue name, x, y and z ({e})") from e
        atoms.chain_id, atoms.res_name = np.array(chain), np.array(name)
        atoms.atom_name, atoms.element = np.full(len(rows), "CA"), np.full(len(rows), "C")
        return pg.ParsedFile(atoms, "template")

    def example(self, folder: Path) -> list[Path]:
        """Write a file for the conformity checks."""
        path = folder / "example.template"
        path.write_bytes(FIRST + b"A 1 GLY 0.0 0.0 0.0\nA 2 ALA 3.8 0.0 0.0\n")
        return [path]
