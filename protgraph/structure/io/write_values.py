"""Write a structure file again with a value per residue in the B factors of its atoms."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
from biotite.structure import AtomArray

from protgraph.errors import OptionError
from protgraph.file_io import atomic_write
from protgraph.structure.io.cif_values import atoms_as_cif, edited_cif
from protgraph.structure.io.pdb_values import edit_pdb, write_pdb
from protgraph.structure.io.polymers import Identity, Polymers, find_polymers, letters, run_starts
from protgraph.structure.io.read_options import ReadOptions
from protgraph.structure.io.readers import read_atoms
from protgraph.structure.io.residue_values import (
    ResidueValues,
    has_other_identities,
    identities_of_runs,
    renamed_identities,
    rows_of_runs,
)
from protgraph.structure.io.sniff import FileContent, decode_text
from protgraph.structure.io.sources import open_source, read_residues
from protgraph.structure.residues.alphabet import residue_kind
from protgraph.structure.residues.residues import Residues

__all__ = ["STRUCTURE_SUFFIXES", "WrittenStructure", "structure_format", "write_residue_values"]

STRUCTURE_SUFFIXES = (".cif", ".pdb", ".cif.gz", ".pdb.gz")
"""Suffixes of files that :func:`write_residue_values` writes."""


@dataclass(frozen=True)
class WrittenStructure:
    """Counts of a written structure file.

    ``source``: file that was read. ``residues``: residues with a value, each counted once. ``without_value``:
    amino-acid residues without a value, whose B factors are 0. ``repeated``: further entries of these residues:
    alternate locations with another residue name, and atoms that the file has at several places. ``other``: other
    molecules (ligands, nucleotides, water), whose B factors are 0. ``changes``: what is written otherwise than in the
    source, so that the file is valid, one text each.
    """

    path: Path
    source: str
    residues: int
    without_value: int
    repeated: int
    other: int
    changes: tuple[str, ...] = ()


def structure_format(path: str | Path) -> str:
    """Return "pdb" or "mmcif" by the suffix of an output file."""
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

    ``path``: output file; the suffix .cif, .pdb, .cif.gz or .pdb.gz selects the format. An existing file is replaced.
    ``source``: PDB, mmCIF or BinaryCIF file that the values belong to, or an archive entry. ``read``: model and
    assembly that were read. Raises :class:`OptionError` if the suffix is not allowed, or the content does not fit into
    a PDB file. Raises :class:`StructureFileError` if the source cannot be read.
    """
    path, read = Path(path), read or ReadOptions()
    form = structure_format(path)
    file = source if isinstance(source, FileContent) else open_source(source)
    parsed = read_atoms(file, model=read.model_number, assembly=read.assembly)
    atoms = parsed.atoms
    start = run_starts(atoms)
    identity = identities_of_runs(atoms, start)
    # Chains that occur twice have other names in the values than in the file.
    if read.chains is not None or has_other_identities(identity, values):
        identity = renamed_identities(atoms, start, identity, _all_residues(file, read))
    rows = rows_of_runs(atoms, start, values, identity)
    of_residues = np.where(rows >= 0, values.values[rows], np.nan)
    b_factor = np.repeat(np.nan_to_num(values.scale * of_residues, nan=0.0), np.diff(start, append=len(atoms)))
    details = values.details
    changes: tuple[str, ...] = ()
    is_text = parsed.format == "pdb" and read.assembly is None
    is_cif = parsed.format in ("mmcif", "bcif") and read.assembly is None
    if form == "pdb":
        if is_text:
            edited = edit_pdb(decode_text(file.data), read.model_number, atoms, b_factor, details, file.path)
        else:
            polymers = _polymers(atoms, identity, file, read)
            edited = write_pdb(atoms, b_factor, details, file.path, polymers=polymers)
        data, changes = edited.text.encode("utf-8"), edited.changes
    elif is_cif and parsed.block is not None:
        inferred = parsed.inferred_elements > 0
        edit = partial(edited_cif, file, parsed.block, read.model_number, atoms, b_factor, details)
        data = edit(inferred_elements=inferred, polymers=partial(_polymers, atoms, identity, file, read))
    else:
        name = Path(Path(file.path).name.removesuffix(".gz")).stem
        named, changes = _name_blank_chains(atoms, identity)
        polymers = _polymers(named, identity, file, read)
        data = atoms_as_cif(named, b_factor, details, name=name, polymers=polymers)
    with atomic_write(path) as temporary:
        temporary.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    counts = _count(path, file.path, atoms.res_name[start], np.where(np.isnan(of_residues), -1, rows))
    return replace(counts, changes=changes)


def _all_residues(file: FileContent, read: ReadOptions) -> Residues:
    return read_residues(file, replace(read, chains=None))


def _name_blank_chains(atoms: AtomArray, identity: Sequence[Identity]) -> tuple[AtomArray, tuple[str, ...]]:
    """Return atoms with unused chain ids in place of blank ones, which mmCIF does not have, and what was changed.

    Each molecule without a chain id gets one of its own, see :func:`identities_of_runs`.
    """
    is_blank = atoms.chain_id == ""
    if not is_blank.any():
        return atoms, ()
    used = set(atoms.chain_id.tolist())
    unused = (name for name in map(letters, count()) if name not in used)
    start = run_starts(atoms)
    molecules = np.repeat([chain for chain, _, _ in identity], np.diff(start, append=len(atoms)))
    named = atoms.copy()
    names = {molecule: next(unused) for molecule in dict.fromkeys(molecules[is_blank].tolist())}
    for molecule, name in names.items():
        named.chain_id[is_blank & (molecules == molecule)] = name
    chains = ", ".join(map(repr, names.values()))
    return named, (f"atoms without a chain id have chain {chains}",)


def _polymers(atoms: AtomArray, identity: Sequence[Identity], file: FileContent, read: ReadOptions) -> Polymers:
    residues = _all_residues(file, read)
    protein = zip(residues.chain.tolist(), residues.res_id.tolist(), residues.ins_code.tolist(), strict=True)
    return find_polymers(atoms, identity, list(protein))


def _count(path: Path, source: str, res_name: np.ndarray, rows: np.ndarray) -> WrittenStructure:
    """Count residues; ``rows`` ``(R,)`` is the row of each run of atoms in the values, −1 without a value."""
    has_value = rows >= 0
    is_protein = np.array([residue_kind(name) == "protein" for name in res_name.tolist()])
    residues = len(np.unique(rows[has_value]))
    return WrittenStructure(
        path,
        source,
        residues,
        without_value=int((is_protein & ~has_value).sum()),
        repeated=int(has_value.sum()) - residues,
        other=int((~has_value & ~is_protein).sum()),
    )
