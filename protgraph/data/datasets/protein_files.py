"""Proteins of a folder before they are read: structure files and records of FASTA files, and what they are called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from protgraph.data.datasets.labels import SHOWN
from protgraph.errors import DatasetError, LabelError, StructureFileError
from protgraph.structure.io.fasta import is_fasta, read_fasta
from protgraph.structure.io.sources import SUFFIXES, is_protein_file

__all__ = ["ProteinFile", "folder_files", "folder_sources", "named_sources", "source_ids"]


@dataclass(frozen=True)
class ProteinFile:
    """A structure file, or one record of a FASTA file.

    Parameters
    ----------
    path : Path
    record : str, optional
        Name of the record; None of a structure.
    """

    path: Path
    record: str | None = None

    @property
    def name(self) -> str:
        """What errors call it."""
        return self.path.name if self.record is None else f"{self.path.name}#{self.record}"

    @property
    def stem(self) -> str:
        """What examples call it, where that is unique."""
        return _stem(self.path) if self.record is None else self.record


def folder_files(folder: Path) -> list[Path]:
    """Files with the suffix of a structure or FASTA, maybe gzipped, sorted; folders in it are not searched.

    Raises
    ------
    DatasetError
        There is no such folder.
    """
    if not folder.is_dir():
        raise DatasetError(f"no folder of structures at {str(folder)!r}")
    return sorted(p for p in folder.iterdir() if is_protein_file(p) and p.is_file())


def folder_sources(folder: Path) -> list[ProteinFile]:
    """Every protein of a folder.

    Raises
    ------
    DatasetError
        There is no such folder, or no file of proteins in it.
    """
    found = [source for path in folder_files(folder) for source in _sources(path)]
    if not found:
        known = ", ".join(SUFFIXES)
        raise DatasetError(
            f"folder {str(folder)!r} holds no structure or FASTA file ({known}, maybe .gz).\n"
            "Files in folders below it do not count."
        )
    return found


def named_sources(folder: Path, names: Sequence[str], where: str) -> tuple[list[ProteinFile], list[int]]:
    """The proteins that a table names, and which of them each of its rows names.

    Parameters
    ----------
    folder : Path
    names : sequence of str
        Of each row: a file's name with or without its suffix, a record's name, or the file's with "#" and that.
    where : str
        What errors call the table.

    Raises
    ------
    LabelError
        A name is in no file, or may be any of several.
    """
    known = _by_name(folder)
    found: dict[str, ProteinFile] = {}
    absent: list[str] = []
    for name in dict.fromkeys(names):
        exact = _sources(folder / name) if name and (folder / name).is_file() else known.get(name, [])
        if len(exact) > 1:
            shown = ", ".join(source.name for source in exact[:SHOWN]) + (", …" if len(exact) > SHOWN else "")
            raise LabelError(f"{where}: {name!r} may be any of {shown}; give the whole name")
        found |= {name: exact[0]} if exact else {}
        absent += [] if exact else [name]
    if absent:
        shown = ", ".join(map(repr, absent[:SHOWN])) + (", …" if len(absent) > SHOWN else "")
        raise LabelError(f"{where} names {len(absent)} files that are not in {folder}: {shown}")
    sources = list(dict.fromkeys(found.values()))
    place = {source: i for i, source in enumerate(sources)}
    return sources, [place[found[name]] for name in names]


def source_ids(sources: Sequence[ProteinFile]) -> list[str]:
    """What examples call them: the shortest name that is unique."""
    often = Counter(source.stem for source in sources)
    return [source.stem if often[source.stem] == 1 else source.name for source in sources]


def _by_name(folder: Path) -> dict[str, list[ProteinFile]]:
    """What may be meant by a name without the suffix, by a record's name, or by both."""
    named: dict[str, list[ProteinFile]] = {}
    for path in folder_files(folder):
        sources = _sources(path)
        for source in sources:
            names = {source.stem, source.name, *([_stem(path), path.name] if len(sources) == 1 else [])}
            for name in names:
                named.setdefault(name, []).append(source)
    return named


def _sources(path: Path) -> list[ProteinFile]:
    """A structure file itself; of a FASTA file, every record.

    A FASTA file that cannot be read is as one record: it is listed with the reason when that is read.
    """
    if not is_fasta(path):
        return [ProteinFile(path)]
    try:
        return [ProteinFile(path, record.name) for record in read_fasta(path)]
    except StructureFileError:
        return [ProteinFile(path, _stem(path))]


def _stem(path: Path) -> str:
    """The name without the suffixes of a structure file."""
    name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
    return name[: name.rindex(".")] if name.lower().endswith(SUFFIXES) else name
