"""Conversion of source proteins to prepared structures and label tables: proteins alone, resumed after a kill."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from protgraph.data.datasets.labels import ResidueLabels, absent_residues_error
from protgraph.data.datasets.prepared_dataset import PROTEIN_LABELS, RESIDUE_LABELS, STRUCTURES, PreparedDataset
from protgraph.data.datasets.prepared_folder import EXAMPLES, MANIFEST, has_digest, write_table
from protgraph.data.datasets.source_protein import SourceFolder, SourceProtein
from protgraph.file_io import atomic_write, file_sha256
from protgraph.structure import Residues, Structure, clean
from protgraph.structure.residues.identity import residue_ids

if TYPE_CHECKING:
    from biotite.structure.io import pdbx

__all__ = ["prepare_structures", "protein_bytes"]


def prepare_structures(
    dataset: PreparedDataset, source: SourceFolder, part: Path, progress: Callable[[int], None] | None = None
) -> int:
    """Write the structures of a source, their label tables and the manifest.

    Each structure keeps its protein residues with their heavy atoms, of the chains that the dataset predicts. The log
    ``done.tsv`` in the scratch folder has the finished ones; a structure is converted again only if its source differs.
    """
    for folder in (part / STRUCTURES, source.scratch):
        folder.mkdir(exist_ok=True)
    proteins, rows, reused = [], [], 0
    log_path = source.scratch / "done.tsv"
    earlier = _earlier_files(log_path)
    with open(log_path, "a", encoding="utf-8") as log:
        for protein in dataset.convert(source):
            row, is_reused = _convert(protein, part, earlier)
            if not is_reused:
                log.write(row.line())
                log.flush()
            proteins.append(protein)
            rows.append(row)
            reused += is_reused
            if progress is not None:
                progress(len(proteins))
    _write_tables(dataset, part, proteins, rows)
    return reused


def protein_bytes(structure: Structure, residues: Residues, name: str) -> bytes:
    """Return a BinaryCIF file of residues of a structure, heavy atoms only."""
    from biotite.structure.io import pdbx

    # By position: `clean` gives another chain id or insertion code to residues whose identity is not unique.
    positions = set(map(tuple, residues.atom_pos.tolist()))
    is_kept = [position in positions for position in map(tuple, structure.atoms.coord.tolist())]
    atoms = structure.atoms[np.array(is_kept)]
    file, content = pdbx.BinaryCIFFile(), io.BytesIO()
    pdbx.set_structure(file, atoms, data_block=name)
    _compressed(file).write(content)
    return content.getvalue()


def _compressed(file: pdbx.BinaryCIFFile) -> pdbx.BinaryCIFFile:
    """Return a file with the same values in fewer bytes, if there is one; no number is rounded."""
    from biotite.structure.io import pdbx

    try:
        # A positive tolerance is required; this one is smaller than the distance of numbers.
        return pdbx.compress(file, rtol=0, atol=1e-15)
    except ValueError:  # fixed-point numbers whose differences exceed 32 bits, e.g. 200 Å with seven decimals
        return file


@dataclass(frozen=True)
class _Converted:
    """One line of the log: file, digests of source and content, and labeled residues that have no CA atom."""

    file: str
    source: str
    digest: str
    without_ca: str

    @classmethod
    def parse(cls, line: str) -> _Converted:
        return cls(*line.split("\t"))

    def line(self) -> str:
        return f"{self.file}\t{self.source}\t{self.digest}\t{self.without_ca}\n"


def _convert(protein: SourceProtein, part: Path, earlier: Mapping[str, _Converted]) -> tuple[_Converted, bool]:
    """Write the structure of a protein unless an earlier run did; return its line of the log, and if one did."""
    name = f"{protein.id}.bcif"
    path = part / STRUCTURES / name
    labeled = None if protein.residues is None else ResidueLabels(*protein.residues, np.zeros(len(protein.residues[0])))
    content = repr((protein.chains, [] if labeled is None else labeled.ids)).encode() + protein.source_bytes()
    source = hashlib.sha256(content).hexdigest()
    if name in earlier and earlier[name].source == source and has_digest(path, earlier[name].digest):
        return earlier[name], True
    structure = protein.structure()
    residues = clean(structure, chains=None if protein.chains is None else list(protein.chains))
    data = protein_bytes(structure, residues, protein.id)
    with atomic_write(path) as temporary:
        temporary.write_bytes(data)
    without_ca = [] if labeled is None else _without_ca(labeled, residues, structure)
    return _Converted(name, source, hashlib.sha256(data).hexdigest(), ",".join(without_ca)), False


def _without_ca(labels: ResidueLabels, residues: Residues, structure: Structure) -> list[str]:
    """Return the labeled residues of a structure that are no residues of a graph because they have no CA atom."""
    absent = labels.absent(residues)
    atoms = structure.atoms
    present = set(residue_ids(atoms.chain_id, atoms.res_id, atoms.ins_code))
    names = [labels.ids[i] for i in np.flatnonzero(absent)]
    missing = np.isin(labels.ids, [name for name in names if name not in present])
    if missing.any():
        raise absent_residues_error([(structure.name, labels, missing)])
    return names


def _earlier_files(log: Path) -> dict[str, _Converted]:
    """Return the lines of the log of an interrupted run by file; a last line that is cut is left out."""
    lines = log.read_text(encoding="utf-8").split("\n")[:-1] if log.is_file() else []
    found = [_Converted.parse(line) for line in lines if line.count("\t") == 3]
    return {row.file: row for row in found}


def _write_tables(dataset: PreparedDataset, part: Path, proteins: list[SourceProtein], rows: list[_Converted]) -> None:
    """Write examples, label tables and, last, the manifest."""
    cells = [(p.id, row.file, p.split, p.cluster, row.without_ca) for p, row in zip(proteins, rows, strict=True)]
    write_table(part / EXAMPLES, [("id", "file", "split", "cluster", "without_ca"), *cells])
    dropped = {row.file: set(row.without_ca.split(",")) - {""} for row in rows}
    labeled = {t: c for t, c in dataset.card.tasks.items() if not c.is_derived}
    tasks = {level: [t for t, c in labeled.items() if c.target.level == level] for level in ("node", "graph")}
    if tasks["node"]:
        pq.write_table(_residue_table(proteins, tasks["node"], dropped), part / RESIDUE_LABELS, compression="zstd")
    if tasks["graph"]:
        pq.write_table(_protein_table(proteins, tasks["graph"]), part / PROTEIN_LABELS, compression="zstd")
    tables = [name for name in (EXAMPLES, RESIDUE_LABELS, PROTEIN_LABELS) if (part / name).is_file()]
    files = [(name, file_sha256(part / name), "") for name in tables]
    files += [(f"{STRUCTURES}/{r.file}", r.digest, r.source) for r in sorted(rows, key=lambda r: r.file)]
    write_table(part / MANIFEST, [("file", "sha256", "source_sha256"), *files])


def _residue_table(proteins: list[SourceProtein], tasks: list[str], dropped: Mapping[str, Collection[str]]) -> pa.Table:
    """Return one row per labeled residue, in the layout of a label table of users; residues without CA are left out."""
    columns: dict[str, list] = {name: [] for name in ("file", "chain", "res_id", "ins_code", "split", *tasks)}
    for protein in proteins:
        if protein.residues is None:
            continue
        chain, number, code = protein.residues
        keep = ~np.isin(residue_ids(chain, number, code), list(dropped[f"{protein.id}.bcif"]))
        columns["file"] += [f"{protein.id}.bcif"] * int(keep.sum())
        columns["split"] += [protein.split] * int(keep.sum())
        for name, values in (("chain", chain), ("res_id", number), ("ins_code", code)):
            columns[name] += values[keep].tolist()
        for task in tasks:
            own = protein.residue_labels.get(task)
            columns[task] += [np.nan] * int(keep.sum()) if own is None else own[keep].tolist()
    return pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()})


def _protein_table(proteins: list[SourceProtein], tasks: list[str]) -> pa.Table:
    columns: dict[str, list] = {"file": [f"{p.id}.bcif" for p in proteins], "split": [p.split for p in proteins]}
    columns |= {task: [float(p.protein_labels.get(task, np.nan)) for p in proteins] for task in tasks}
    return pa.table(columns)
