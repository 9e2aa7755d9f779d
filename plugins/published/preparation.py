"""Preparation of a dataset from a source folder: checksums of the source, conversion, verified counts."""

from __future__ import annotations

import hashlib
import io
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from protgraph_plugins.published.prepared_dataset import (
    EXAMPLES,
    MANIFEST,
    PROTEIN_LABELS,
    RESIDUE_LABELS,
    STRUCTURES,
    PreparedDataset,
)
from protgraph_plugins.published.source_folder import SourceFolder, SourceProtein, read_tsv, write_tsv

from protgraph.data.datasets import ResidueLabels, SplitCount, absent_residues_error
from protgraph.errors import DatasetError, list_first
from protgraph.file_io import atomic_write, file_sha256
from protgraph.structure import Residues, Structure, clean
from protgraph.structure.residues import residue_ids

if TYPE_CHECKING:
    from biotite.structure.io import pdbx

__all__ = ["PreparationResult", "check_counts", "damaged_files", "prepare_dataset"]

_SHOWN = 5


@dataclass(frozen=True)
class PreparationResult:
    """Result of :func:`prepare_dataset`.

    Parameters
    ----------
    folder : Path
    proteins : int
        Proteins of the dataset.
    reused : int
        Proteins that an earlier, interrupted run had converted, or all of them if the folder was complete.
    without_ca : tuple of str
        Labeled residues that are left out because they have no CA atom.
    failures : int
        Variants that are left out, without a value or not of their structure; rows of ``failures.tsv``.
    """

    folder: Path
    proteins: int
    reused: int
    without_ca: tuple[str, ...] = ()
    failures: int = 0


def prepare_dataset(
    dataset: PreparedDataset, source: str | Path, *, progress: Callable[[int], None] | None = None
) -> PreparationResult:
    """Convert a source folder into ``dataset.folder``.

    Each structure keeps its protein residues with their heavy atoms, of the chains that the dataset predicts; ligands
    (unless the dataset keeps them), nucleic acids, water and other chains are removed. An interrupted run is continued:
    a structure is converted again only if its source differs. Two runs write the same bytes. A folder that is complete
    is left as it is.

    Parameters
    ----------
    dataset : PreparedDataset
    source : str or Path
        Folder of the source, laid out as the repository of the card.
    progress : callable, optional
        Called with the number of proteins that are done.

    Raises
    ------
    DatasetError
        The source is incomplete or has other checksums, the folder has other files, the prepared folder is damaged, or
        counts differ from the card.
    """
    source, final = Path(source), dataset.folder
    if dataset.is_prepared:
        if damaged := damaged_files(dataset):
            names = list_first(damaged, _SHOWN)
            raise DatasetError(f"{final}: {len(damaged)} damaged files: {names}. Remove the folder and prepare again.")
        return _result(final)
    if not source.is_dir():
        raise DatasetError(f"source {str(source)!r} of dataset {dataset.name!r} is not a folder.")
    if final.is_file() or (final.is_dir() and any(final.iterdir())):
        raise DatasetError(f"{str(final)!r} exists and is not this dataset. Give another folder with -o.")
    _check_sources(dataset, source)
    unfinished = final.with_name(f".{final.name}.part")
    unfinished.mkdir(parents=True, exist_ok=True)
    try:
        reused = _write(dataset, SourceFolder(source, unfinished / "source"), unfinished, progress)
    except DatasetError:
        if not any((unfinished / STRUCTURES).glob("*")):  # nothing to continue from
            shutil.rmtree(unfinished)
        raise
    check_counts(type(dataset)(folder=str(unfinished)))
    shutil.rmtree(unfinished / "source", ignore_errors=True)
    unfinished.rename(final)
    return _result(final, reused)


def damaged_files(dataset: PreparedDataset) -> list[str]:
    """Return the files of a prepared dataset that are missing or differ from its manifest."""
    rows = read_tsv(dataset.folder / MANIFEST)
    paths = {row["file"]: dataset.folder / row["file"] for row in rows}
    return [row["file"] for row in rows if not _has_digest(paths[row["file"]], row["sha256"])]


def check_counts(dataset: PreparedDataset) -> None:
    """Read all proteins of a prepared dataset and compare the counts of every task with the card."""
    faults = []
    for task, card in dataset.card.tasks.items():
        found = dataset.check(task)
        for split in dict.fromkeys([*card.counts, *found]):
            have, want = found.get(split), card.counts.get(split)
            if have != want:
                faults.append(f"task {task}, split {split}: {_text(have)}, the card has {_text(want)}")
    if faults:
        raise DatasetError(f"dataset {dataset.name!r} differs from its card: " + "; ".join(faults) + ".")


def _result(folder: Path, reused: int | None = None) -> PreparationResult:
    """Return the result of a complete folder; ``reused`` is the number of all proteins by default."""
    rows = read_tsv(folder / EXAMPLES)
    dropped = [f"{row['file']} {name}" for row in rows for name in row.get("without_ca", "").split(",") if name]
    table = folder / "failures.tsv"  # of mutations
    failures = len(read_tsv(table)) if table.is_file() else 0
    return PreparationResult(folder, len(rows), len(rows) if reused is None else reused, tuple(dropped), failures)


def _check_sources(dataset: PreparedDataset, source: Path) -> None:
    """Raise if a file of the source has another checksum than on the card."""
    for name, digest in dataset.card.provenance.checksums:
        if (source / name).is_file() and (found := file_sha256(source / name)) != digest:
            raise DatasetError(f"{source / name}: SHA-256 {found}, the card of {dataset.name!r} has {digest}.")


def _text(count: SplitCount | None) -> str:
    if count is None:
        return "nothing"
    return f"{count.proteins} proteins, {count.residues} residues, {count.labeled} labels, per class {count.per_class}"


def _has_digest(path: Path, digest: str) -> bool:
    return path.is_file() and file_sha256(path) == digest


# --- files of the prepared folder ----------------------------------------------------------------------------------


def _write(dataset: PreparedDataset, source: SourceFolder, folder: Path, progress: Callable[[int], None] | None) -> int:
    """Write all files of a prepared folder, the manifest last; return the proteins that an earlier run had written.

    The log ``done.tsv`` in the scratch folder has the finished structures; one is converted again only if its source
    differs.
    """
    for new_folder in (folder / STRUCTURES, source.scratch):
        new_folder.mkdir(exist_ok=True)
    proteins, converted, reused = [], [], 0
    log_path = source.scratch / "done.tsv"
    earlier = _earlier_files(log_path)
    with open(log_path, "a", encoding="utf-8") as log:
        for protein in dataset.convert(source):
            row, is_reused = _convert(protein, folder, earlier, keeps_ligands=dataset.keeps_ligands)
            if not is_reused:
                log.write(row.line())
                log.flush()
            proteins.append(protein)
            converted.append(row)
            reused += is_reused
            if progress is not None:
                progress(len(proteins))
    tables = _write_tables(dataset, folder, proteins, converted)
    structures = {protein.id: folder / STRUCTURES / row.file for protein, row in zip(proteins, converted, strict=True)}
    further = dataset.write_tables(source, folder, structures)
    manifest = [("file", "sha256", "source_sha256")]
    manifest += [(name, file_sha256(folder / name), "") for name in tables]
    manifest += [
        (f"{STRUCTURES}/{row.file}", row.digest, row.source) for row in sorted(converted, key=lambda row: row.file)
    ]
    manifest += [(name, file_sha256(folder / name), "") for name in further]
    write_tsv(folder / MANIFEST, manifest)
    return reused


def _protein_bytes(structure: Structure, residues: Residues, name: str) -> bytes:
    """Return a BinaryCIF file of residues of a structure, and of their ligands if they have some, heavy atoms only."""
    from biotite.structure.io import pdbx

    # By position: `clean` gives another chain id or insertion code to residues whose identity is not unique.
    positions = set(map(tuple, residues.atom_pos.tolist()))
    if residues.ligands is not None:
        positions |= set(map(tuple, residues.ligands.atom_pos.tolist()))
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


def _convert(
    protein: SourceProtein, folder: Path, earlier: Mapping[str, _Converted], *, keeps_ligands: bool
) -> tuple[_Converted, bool]:
    """Write the structure of a protein unless an earlier run did; return its line of the log, and if one did."""
    name = f"{protein.id}.bcif"
    path = folder / STRUCTURES / name
    labeled = None if protein.residues is None else ResidueLabels(*protein.residues, np.zeros(len(protein.residues[0])))
    content = repr((protein.chains, [] if labeled is None else labeled.ids)).encode() + protein.source_bytes()
    source = hashlib.sha256(content).hexdigest()
    if name in earlier and earlier[name].source == source and _has_digest(path, earlier[name].digest):
        return earlier[name], True
    structure = protein.structure()
    chains = None if protein.chains is None else list(protein.chains)
    residues = clean(structure, chains=chains, ligands=keeps_ligands)
    data = _protein_bytes(structure, residues, protein.id)
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


def _write_tables(
    dataset: PreparedDataset, folder: Path, proteins: Sequence[SourceProtein], converted: Sequence[_Converted]
) -> list[str]:
    """Write the examples and the label tables; return their names."""
    rows = [(p.id, row.file, p.split, p.cluster, row.without_ca) for p, row in zip(proteins, converted, strict=True)]
    write_tsv(folder / EXAMPLES, [("id", "file", "split", "cluster", "without_ca"), *rows])
    labeled = {task: card.target.level for task, card in dataset.card.tasks.items() if not card.is_derived}
    of_residues = [task for task, level in labeled.items() if level == "node"]
    of_proteins = [task for task, level in labeled.items() if level == "graph"]
    names = [EXAMPLES]
    if of_residues:
        left_out = {row.file: set(row.without_ca.split(",")) - {""} for row in converted}
        table = _residue_table(proteins, of_residues, left_out)
        pq.write_table(table, folder / RESIDUE_LABELS, compression="zstd")
        names.append(RESIDUE_LABELS)
    if of_proteins:
        pq.write_table(_protein_table(proteins, of_proteins), folder / PROTEIN_LABELS, compression="zstd")
        names.append(PROTEIN_LABELS)
    return names


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
    for task in tasks:
        columns[task] = [float(p.protein_labels.get(task, np.nan)) for p in proteins]
    return pa.table(columns)
