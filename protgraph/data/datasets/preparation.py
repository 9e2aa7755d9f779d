"""Preparation of a dataset from a source folder: checksums of the source, conversion, verified counts."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from protgraph.data.datasets.card import SplitCount
from protgraph.data.datasets.prepared_folder import EXAMPLES, MANIFEST, PreparedFolder, has_digest
from protgraph.data.datasets.site_tables import read_tsv
from protgraph.data.datasets.source_protein import SourceFolder
from protgraph.errors import DatasetError, list_first
from protgraph.file_io import file_sha256

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
    dataset: PreparedFolder, source: str | Path, *, progress: Callable[[int], None] | None = None
) -> PreparationResult:
    """Convert a source folder into ``dataset.folder``.

    Each structure keeps its protein residues with their heavy atoms, of the chains that the dataset predicts; ligands,
    nucleic acids, water and other chains are removed. An interrupted run is continued: a structure is converted again
    only if its source differs. Two runs write the same bytes. A folder that is complete is left as it is.

    Parameters
    ----------
    dataset : PreparedFolder
    source : str or Path
        Folder in one of the layouts that the dataset supports.
    progress : callable, optional
        Called with the number of proteins that are done.

    Raises
    ------
    DatasetError
        The source is incomplete or has other checksums, the prepared folder is damaged, or counts differ from the card.
    """
    source, final = Path(source), dataset.folder
    if dataset.is_prepared:
        if damaged := damaged_files(dataset):
            names = list_first(damaged, _SHOWN)
            raise DatasetError(f"{final}: {len(damaged)} damaged files: {names}. Remove the folder and prepare again.")
        return _result(final)
    if not source.is_dir():
        raise DatasetError(f"source {str(source)!r} of dataset {dataset.name!r} is not a folder.")
    _check_sources(dataset, source)
    part = final.with_name(f".{final.name}.part")
    part.mkdir(parents=True, exist_ok=True)
    reused = dataset.write(SourceFolder(source, part / "source"), part, progress)
    check_counts(type(dataset)(folder=str(part)))
    shutil.rmtree(part / "source", ignore_errors=True)
    part.rename(final)
    return _result(final, reused)


def damaged_files(dataset: PreparedFolder) -> list[str]:
    """Return the files of a prepared dataset that are missing or differ from its manifest."""
    rows = read_tsv(dataset.folder / MANIFEST)
    paths = {row["file"]: dataset.folder / row["file"] for row in rows}
    return [row["file"] for row in rows if not has_digest(paths[row["file"]], row["sha256"])]


def check_counts(dataset: PreparedFolder) -> None:
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


def _check_sources(dataset: PreparedFolder, source: Path) -> None:
    """Raise if a file of the source has another checksum than on the card."""
    for name, digest in dataset.card.provenance.checksums:
        if (source / name).is_file() and (found := file_sha256(source / name)) != digest:
            raise DatasetError(f"{source / name}: SHA-256 {found}, the card of {dataset.name!r} has {digest}.")


def _text(count: SplitCount | None) -> str:
    if count is None:
        return "nothing"
    return f"{count.proteins} proteins, {count.residues} residues, {count.labeled} labels, per class {count.per_class}"
