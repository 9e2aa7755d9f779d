"""Write a structure file again with a value per residue in the B factors of its atoms."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from biotite.structure import AtomArray

from protgraph.errors import OptionError
from protgraph.file_io import atomic_write
from protgraph.structure.io.cif_values import cif_of_atoms, cif_of_file, set_b_factors
from protgraph.structure.io.pdb_values import pdb_records, replace_b_factors
from protgraph.structure.io.read_options import ReadOptions
from protgraph.structure.io.readers import ParsedFile, read_atoms
from protgraph.structure.io.residue_values import ResidueValues, rows_of_atoms
from protgraph.structure.io.sniff import FileContent, decode_text
from protgraph.structure.io.sources import open_source, read_residues
from protgraph.structure.residues.alphabet import residue_kind
from protgraph.structure.residues.residues import Residues
from protgraph.structure.residues.structure import residue_starts

__all__ = ["STRUCTURE_SUFFIXES", "WrittenStructure", "structure_format", "write_residue_values"]

STRUCTURE_SUFFIXES = (".cif", ".pdb", ".cif.gz", ".pdb.gz")
"""Suffixes of files that :func:`write_residue_values` writes."""


@dataclass(frozen=True)
class WrittenStructure:
    """Counts of a written structure file.

    Parameters
    ----------
    path : Path
    source : str
        File that was read.
    residues : int
        Residues with a value, each counted once.
    without_value : int
        Amino-acid residues without a value, whose B factors are 0.
    repeated : int
        Further entries of these residues: alternate locations with another residue name, and atoms that the file has
        at several places.
    other : int
        Other molecules (ligands, nucleotides, water), whose B factors are 0.
    """

    path: Path
    source: str
    residues: int
    without_value: int
    repeated: int
    other: int


def structure_format(path: str | Path) -> str:
    """Return "pdb" or "mmcif" by the suffix of an output file.

    Raises
    ------
    OptionError
        The file has another suffix.
    """
    name = Path(path).name.lower()
    if not name.endswith(STRUCTURE_SUFFIXES):
        raise OptionError(f"wrong suffix of a structure file: {str(path)!r}. Allowed: {', '.join(STRUCTURE_SUFFIXES)}.")
    return "pdb" if name.removesuffix(".gz").endswith(".pdb") else "mmcif"


def write_residue_values(
    path: str | Path, source: str | Path | FileContent, values: ResidueValues, *, read: ReadOptions | None = None
) -> WrittenStructure:
    """Write a structure file with values in the B factors, and the rest as it is in the source.

    Every atom of a residue has its value, probabilities in percent. Atoms without a value have 0. The model that was
    read is written, without other models. Header records stay if the format does and no assembly is built; REMARK 99
    of a PDB file and the category ``protgraph_b_factor`` of an mmCIF file describe the values.

    Parameters
    ----------
    path : str or Path
        Output file; the suffix .cif, .pdb, .cif.gz or .pdb.gz selects the format. An existing file is replaced.
    source : str, Path or FileContent
        PDB, mmCIF or BinaryCIF file that the values belong to, or an archive entry.
    values : ResidueValues
    read : ReadOptions, optional
        Model and assembly that were read.

    Raises
    ------
    OptionError
        The suffix is not allowed, or the content does not fit into a PDB file.
    StructureFileError
        The source cannot be read.
    """
    path, read = Path(path), read or ReadOptions()
    form = structure_format(path)
    file = source if isinstance(source, FileContent) else open_source(source)
    parsed = read_atoms(file, model=read.model_number, assembly=read.assembly)
    atoms = parsed.atoms
    rows = rows_of_atoms(atoms, values, _residues_if_renamed(file, atoms, values, read))
    found = np.where(rows >= 0, values.values[rows], np.nan)
    b_factor = np.nan_to_num(values.scale * found, nan=0.0)
    text = {"pdb": _as_pdb, "mmcif": _as_cif}[form](file, parsed, b_factor, values, read)
    data = text.encode("utf-8")
    with atomic_write(path) as temporary:
        temporary.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return _count(path, file.path, atoms, np.where(np.isnan(found), -1, rows))


def _residues_if_renamed(
    file: FileContent, atoms: AtomArray, values: ResidueValues, read: ReadOptions
) -> Residues | None:
    """Return the residues of the file if values belong to a chain with a repeated id, e.g. "A-2"."""
    is_renamed = bool(set(values.chain.tolist()) - set(atoms.chain_id.tolist()))
    return read_residues(file, read) if is_renamed else None


def _as_pdb(
    file: FileContent, parsed: ParsedFile, b_factor: np.ndarray, values: ResidueValues, read: ReadOptions
) -> str:
    if parsed.format == "pdb" and read.assembly is None:
        return replace_b_factors(decode_text(file.data), read.model_number, b_factor, values.details, file.path)
    return replace_b_factors(pdb_records(parsed.atoms, file.path), 1, b_factor, values.details, file.path)


def _as_cif(
    file: FileContent, parsed: ParsedFile, b_factor: np.ndarray, values: ResidueValues, read: ReadOptions
) -> str:
    is_edited = parsed.format in ("mmcif", "bcif") and read.assembly is None
    name = Path(Path(file.path).name.removesuffix(".gz")).stem.replace(" ", "_")
    cif = cif_of_file(file) if is_edited else cif_of_atoms(parsed.atoms, name)
    set_b_factors(cif, read.model_number if is_edited else 1, b_factor, values.details, file.path)
    return cif.serialize()


def _count(path: Path, source: str, atoms: AtomArray, rows: np.ndarray) -> WrittenStructure:
    """Count residues; ``rows`` ``(A,)`` is the row of each atom in the values, −1 without a value."""
    start = residue_starts(atoms)
    has_value = rows[start] >= 0
    is_protein = np.array([residue_kind(name) == "protein" for name in atoms.res_name[start].tolist()])
    residues = len(np.unique(rows[start][has_value]))
    return WrittenStructure(
        path,
        source,
        residues,
        without_value=int((is_protein & ~has_value).sum()),
        repeated=int(has_value.sum()) - residues,
        other=int((~has_value & ~is_protein).sum()),
    )
