"""Small PDB files written by a test, and comparison of residue arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from protgraph.structure import Residues


def atom_line(name, res_name, chain, res_id, x, *, ins=" ", alt=" ", occ=1.0, element="", record="ATOM") -> str:
    """Return one atom record; ``x`` is a number (y = z = 0) or three."""
    xyz = (x, 0.0, 0.0) if np.isscalar(x) else x
    padded = name if len(name) == 4 else f" {name:<3}"
    coordinates = "".join(f"{v:8.3f}" for v in xyz)
    return (
        f"{record:<6}    1 {padded}{alt}{res_name:>3} {chain}{res_id:>4}{ins}   {coordinates}{occ:6.2f} 10.00"
        f"          {element or name[0]:>2}"
    )


def residue_lines(res_name, chain, res_id, x, **options) -> list[str]:
    """Return N, CA, C and O on a line from ``x``; a residue at ``x + 3.9`` is bonded to it."""
    places = {"N": x, "CA": x + 1.5, "C": x + 2.6, "O": (x + 2.6, 1.2, 0.0)}
    return [atom_line(name, res_name, chain, res_id, place, **options) for name, place in places.items()]


@pytest.fixture
def write_pdb(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes lines (or lists of lines) to a PDB file."""

    def write(*lines: str | list[str], name: str = "made.pdb") -> Path:
        flat = [text for line in lines for text in ([line] if isinstance(line, str) else line)]
        path = tmp_path / name
        path.write_text("\n".join(flat) + "\nEND\n")
        return path

    return write


class PDBLines(NamedTuple):
    """Functions that return the records of an atom and of a residue."""

    atom: Callable[..., str] = atom_line
    residue: Callable[..., list[str]] = residue_lines


@pytest.fixture
def pdb_lines() -> PDBLines:
    """Return :func:`atom_line` and :func:`residue_lines`."""
    return PDBLines()


@pytest.fixture
def assert_same() -> Callable[[Residues, Residues], None]:
    """Return a function that compares every array bit for bit, and the report."""

    def check(a: Residues, b: Residues) -> None:
        for field in dataclasses.fields(Residues):
            x, y = getattr(a, field.name), getattr(b, field.name)
            if not isinstance(x, np.ndarray):
                assert x == y, field.name
            else:
                assert x.dtype.kind == y.dtype.kind and (x.dtype.kind == "U" or x.dtype == y.dtype), field.name
                np.testing.assert_array_equal(x, y, err_msg=field.name)

    return check
