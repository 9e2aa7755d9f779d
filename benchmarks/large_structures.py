"""Structures of any size: chains of ``pdb_core`` on a cubic lattice, as mmCIF, BinaryCIF and PDB files."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase, digits

import numpy as np
from biotite.structure import AtomArray, concatenate, filter_amino_acids, get_residue_count
from biotite.structure.io import pdbx
from biotite.structure.io.pdb import PDBFile

from protgraph import registry
from protgraph.structure import load_structure

__all__ = ["write_large_structure"]

_PDB_CHAINS = ascii_uppercase + ascii_lowercase + digits
_CHAINS = 20
_LEAST = 100  # residues of a chain
_STEP = 45.0  # Å between the centers of chains; 200 residues at the density of proteins fill 30 Å


def write_large_structure(residues: int, path: Path) -> int:
    """Write a structure of at least ``residues`` residues as .cif, .bcif or .pdb, and return their number.

    The PDB format has 62 chains and 99 999 atoms, i.e. about 10⁴ residues.
    """
    is_pdb = path.suffix == ".pdb"
    copies, total = [], 0
    chains = list(islice(_chains(), _CHAINS))
    side = int(np.ceil((residues / _LEAST) ** (1 / 3)))
    for number, cell in enumerate(product(range(side), repeat=3)):
        if total >= residues:
            break
        chain_copy = chains[number % len(chains)].copy()
        chain_copy.coord = chain_copy.coord - chain_copy.coord.mean(0) + _STEP * np.array(cell)
        chain_copy.chain_id = np.full(len(chain_copy), _PDB_CHAINS[number] if is_pdb else f"A{number}", dtype="U6")
        copies.append(chain_copy)
        total += get_residue_count(chain_copy)
    if is_pdb:
        file = PDBFile()
        file.set_structure(concatenate(copies))
    else:
        file = pdbx.BinaryCIFFile() if path.suffix == ".bcif" else pdbx.CIFFile()
        pdbx.set_structure(file, concatenate(copies))
    file.write(path)
    return total


def _chains() -> Iterator[AtomArray]:
    dataset = registry.datasets.create("pdb_core")
    for path in sorted({example.path for example in dataset.examples(dataset.tasks()[0])}):
        atoms = load_structure(path).atoms
        atoms = atoms[filter_amino_acids(atoms)]
        chain = atoms[atoms.chain_id == atoms.chain_id[0]]
        if get_residue_count(chain) >= _LEAST:
            yield chain
