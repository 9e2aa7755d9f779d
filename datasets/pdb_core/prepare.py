"""Create ``labels.parquet`` from the structures and tables of this folder.

Run ``python -m protgraph_datasets.pdb_core.prepare``. The table has one row per residue of the 420 chains. Contacts are
computed from the coordinates; their number per chain must equal that in ``chains.tsv``. DSSP letters are joined by
sequence.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.spatial import cKDTree

from protgraph.errors import DatasetError
from protgraph.file_io import atomic_write
from protgraph.structure import Residues, Structure, clean, load_structure

__all__ = ["chain_labels", "contacts", "entry_labels", "main", "read_tables", "write_labels"]

Row = Mapping[str, str]  # of chains.tsv or dssp.tsv
FOLDER = Path(__file__).resolve().parent
LIGAND_CUTOFF = 4.5  # Å between heavy atoms
INTERFACE_CUTOFF = 5.0  # Å between heavy atoms
SMALLEST_PARTNER = 10  # residues of the smallest chain that counts as partner of an interface

SCHEMA = pa.schema(
    {
        "entry": pa.string(),
        "chain": pa.string(),
        "res_id": pa.int32(),
        "ins_code": pa.string(),
        "dssp8": pa.string(),
        "ligand_contact": pa.bool_(),
        "interface": pa.bool_(),
    }
)


def contacts(residues: Residues, other: np.ndarray, cutoff: float) -> np.ndarray:
    """Return ``(N,)`` bool, residues with a heavy atom within ``cutoff`` Å of a point of ``other`` ``(M, 3)``."""
    in_contact = np.zeros(len(residues), dtype=bool)
    if len(other):
        distance, _ = cKDTree(other.astype(np.float64)).query(residues.atom_pos.astype(np.float64))
        in_contact[residues.atom_residue[distance <= cutoff]] = True
    return in_contact


def chain_labels(structure: Structure, protein: Residues, row: Row, dssp8: str) -> dict[str, list]:
    """Compute the columns of one chain.

    Parameters
    ----------
    structure : Structure
        Complete entry.
    protein : Residues
        Protein chains of the entry.
    row : dict
        Row of the chain in chains.tsv.
    dssp8 : str
        One DSSP letter per residue of the sequence; "-" for none.

    Raises
    ------
    DatasetError
        If the sequence or the numbers of contacts differ from the row.
    """
    chain = protein.chains([row["chain"]])
    where = f"{row['entry']} chain {row['chain']}"
    if chain.sequence != row["sequence"] or len(dssp8) != len(chain):
        raise DatasetError(
            f"{where}: the {len(chain)} residues of the structure differ from the sequence in chains.tsv."
        )
    ligand = contacts(chain, _ligand_atoms(structure, chain, row["ligands"]), LIGAND_CUTOFF)
    interface = contacts(chain, _partner_atoms(protein, row["chain"]), INTERFACE_CUTOFF)
    for mask, column in ((ligand, "n_ligand_residues_contact"), (interface, "n_interface_residues")):
        if int(mask.sum()) != int(row[column]):
            raise DatasetError(f"{where}: {column} is {row[column]} in chains.tsv, {int(mask.sum())} in the structure.")
    is_complete = row["ligand_complete"] == "1", row["interface_complete"] in ("1", "pair")
    return {
        "entry": [row["entry"]] * len(chain),
        "chain": chain.chain.tolist(),
        "res_id": chain.res_id.tolist(),
        "ins_code": chain.ins_code.tolist(),
        "dssp8": [None if letter == "-" else letter for letter in dssp8],
        "ligand_contact": ligand.tolist() if is_complete[0] else [None] * len(chain),
        "interface": interface.tolist() if is_complete[1] else [None] * len(chain),
    }


def entry_labels(rows: Sequence[Row], dssp: Mapping[tuple[str, str], Row]) -> list[dict[str, list]]:
    """Compute the columns of each chain of one entry.

    Parameters
    ----------
    rows : sequence of dict
        Rows of the entry in chains.tsv.
    dssp : mapping
        Rows of dssp.tsv by entry and chain.
    """
    structure = load_structure(FOLDER / "structures" / f"{rows[0]['entry']}.bcif")
    protein = clean(structure)
    chains = []
    for row in rows:
        letters = dssp[row["entry"], row["chain"]]
        if letters["sequence"] != row["sequence"]:
            raise DatasetError(f"{row['entry']} chain {row['chain']}: chains.tsv and dssp.tsv differ in sequence.")
        chains.append(chain_labels(structure, protein, row, letters["dssp8"]))
    return chains


def read_tables() -> tuple[dict[str, list[Row]], dict[tuple[str, str], Row]]:
    """Read the rows of chains.tsv by entry, and of dssp.tsv by entry and chain."""
    entries: dict[str, list[Row]] = {}
    for row in _rows("chains.tsv"):
        entries.setdefault(row["entry"], []).append(row)
    return entries, {(row["entry"], row["chain"]): row for row in _rows("dssp.tsv")}


def write_labels(path: Path) -> pa.Table:
    """Compute the labels of all chains, write the table and return it; the output is reproducible byte for byte."""
    entries, dssp = read_tables()
    columns: dict[str, list] = {name: [] for name in SCHEMA.names}
    for rows in entries.values():
        for part in entry_labels(rows, dssp):
            for name, values in part.items():
                columns[name] += values
    table = pa.table(columns, schema=SCHEMA)
    with atomic_write(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")
    return table


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    program = "python -m protgraph_datasets.pdb_core.prepare"
    parser = argparse.ArgumentParser(prog=program, description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--out", type=Path, default=FOLDER / "labels.parquet", help="file to write")
    path = parser.parse_args(argv).out
    table = write_labels(path)
    sys.stdout.write(f"{path}: {table.num_rows} residues of {len(set(table['entry'].to_pylist()))} entries\n")
    return 0


def _rows(name: str) -> Iterator[Row]:
    with open(FOLDER / name, encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t")


def _partner_atoms(protein: Residues, chain: str) -> np.ndarray:
    """Return ``(M, 3)`` Å, heavy atoms of the other protein chains of sufficient length."""
    names, lengths = np.unique(protein.chain, return_counts=True)
    partners = names[(lengths >= SMALLEST_PARTNER) & (names != chain)]
    return protein.atom_pos[np.isin(protein.chain, partners)[protein.atom_residue]]


def _ligand_atoms(structure: Structure, chain: Residues, ligands: str) -> np.ndarray:
    """Return ``(M, 3)`` Å, heavy atoms of the named groups in the entry, without residues of the chain."""
    atoms = structure.atoms
    atoms = atoms[np.isin(atoms.res_name, ligands.split(","))]
    polymer = set(zip(chain.chain.tolist(), chain.res_id.tolist(), chain.ins_code.tolist(), strict=True))
    keys = zip(atoms.chain_id.tolist(), atoms.res_id.tolist(), atoms.ins_code.tolist(), strict=True)
    return atoms.coord[np.array([key not in polymer for key in keys], dtype=bool)]


if __name__ == "__main__":
    sys.exit(main())
