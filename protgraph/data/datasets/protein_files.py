"""Proteins of a folder, list of files or graph store before they are read, and the names that a table may use."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from glob import has_magic
from pathlib import Path
from typing import TYPE_CHECKING

from protgraph import registry
from protgraph.data.datasets.fingerprint import Fingerprint, fingerprint_file
from protgraph.data.datasets.labels import SHOWN
from protgraph.data.store.graph_store import GraphStore, open_store
from protgraph.data.store.store_description import is_store
from protgraph.errors import AbsentFilesError, DatasetError, LabelError, UnknownNameError, list_first, suggest
from protgraph.structure.io.registered_readers import entry_name
from protgraph.structure.io.sniff import is_fasta
from protgraph.structure.io.sources import (
    FolderListing,
    files_of_folder,
    is_protein_file,
    is_source,
    local_files,
    protein_suffixes,
)
from protgraph.wording import count_noun

if TYPE_CHECKING:
    from protgraph.data.datasets.label_table import LabelTable

__all__ = ["ProteinFile", "ProteinFolder", "TableMatch", "file_stem", "open_folder", "source_ids"]


@dataclass(frozen=True)
class ProteinFile:
    """A structure file, or one record of a FASTA file."""

    path: Path
    record: str | None = None  # name of the FASTA record; None for a structure
    relative: str = ""  # path of the file below the folder, with "/"; its name by default
    # path and record to read it from, if these are others: a graph store and the source of one of its proteins
    place: tuple[Path, str | None] | None = None

    @property
    def file(self) -> str:
        """Path of the file below the folder."""
        return self.relative or self.path.name

    @property
    def name(self) -> str:
        """Path of the file below the folder; for a record, followed by "#" and its name."""
        return self.file if self.record is None else f"{self.file}#{self.record}"

    @property
    def stem(self) -> str:
        """Name of the file without suffixes, name of the record, or name of the entry of a container."""
        return file_stem(entry_name(self.path)) if self.record is None else self.record

    @property
    def location(self) -> tuple[Path, str | None]:
        """Path and record from which the protein is read."""
        return self.place or (self.path, self.record)

    def file_names(self) -> set[str]:
        """Return the names that a table may use for the file."""
        names = {self.file, self.path.name, entry_name(self.path)}
        return names | {file_stem(name) for name in names}


_Groups = dict[str, list[ProteinFile]]  # name → proteins


@dataclass(frozen=True)
class TableMatch:
    """Proteins of a folder that a table names; see :meth:`ProteinFolder.match`."""

    proteins: list[ProteinFile]  # each once, in the order of the table
    of_row: list[int]  # number of the protein of each row, without the rows of absent ones
    error: AbsentFilesError | None = None  # names that are not in the folder

    @property
    def absent(self) -> dict[str, int]:
        """Name that is not in the folder → the first row that has it."""
        return {} if self.error is None else self.error.rows


class ProteinFolder(ABC):
    """Proteins of a folder or list of files, or of a graph store."""

    source: Path | list[str]
    """Folder or graph store, or the names that were given."""

    @property
    @abstractmethod
    def path(self) -> Path:
        """Folder of all files, or the graph store."""

    @property
    def described(self) -> str:
        """Folder or list in messages."""
        return str(self.path)

    @abstractmethod
    def groups(self, names: Iterable[str] | None = None) -> _Groups:
        """Return the proteins of each file by its path below the folder; raise DatasetError if there are none.

        ``names`` of a table help to read fewer files; files that they do not name may lack the names of records only
        if they are not FASTA.
        """

    @abstractmethod
    def fingerprint(self, path: Path, record: str | None) -> Fingerprint:
        """Return the fingerprint of the file of a protein, from its location."""

    def other_files(self) -> list[str]:
        """Return the files of the folder that are neither structure nor FASTA files, by their names."""
        return []

    def chains(self, protein: ProteinFile) -> list[str]:
        """Return the protein chains of a file, or the chain of a FASTA record; empty if it cannot be read."""
        fingerprint = self.fingerprint(*protein.location)
        if fingerprint.records is None:
            return list(fingerprint.sequences)
        if protein.record is None or protein.record not in fingerprint.chains:
            return []
        return [fingerprint.chains[protein.record]]

    def match(self, table: LabelTable) -> TableMatch:
        """Return the proteins that a table names, and the names that are not in the folder.

        A row has the name or path of a file below the folder, with or without suffix, the name of a record, or both
        joined by "#". Letters may differ in case where only one file matches.
        """
        names = table.keys["file"].tolist()
        groups = self.groups(names)
        by_name = _by_name(groups)
        by_lower = _by_lower_case(by_name)
        chosen: dict[str, ProteinFile] = {}
        absent: dict[str, int] = {}
        for row, name in zip(table.rows.tolist(), names, strict=True):
            if name in chosen or name in absent:
                continue
            matches = self._named(name, groups, by_name, by_lower)
            if len(matches) > 1:
                shown = list_first([protein.name for protein in matches], SHOWN)
                raise LabelError(f"{table.where}: row {row}: {name!r} is ambiguous: {shown}. Give the whole name.")
            if matches:
                chosen[name] = matches[0]
            else:
                absent[name] = row
        proteins = list(dict.fromkeys(chosen.values()))
        number = {protein: i for i, protein in enumerate(proteins)}
        of_row = [number[chosen[name]] for name in names if name in chosen]
        error = self._absent_error(absent, by_name, table) if absent else None
        return TableMatch(proteins, of_row, error)

    def _named(
        self,
        name: str,
        groups: _Groups,
        by_name: _Groups,
        by_lower: _Groups,
    ) -> list[ProteinFile]:
        """Return the proteins of a name: a path below the folder, a name, a name in another case, or another path."""
        for proteins in (groups.get(name), by_name.get(name), by_lower.get(name.lower())):
            if proteins:
                return proteins
        return self._at_path(name, groups)

    def _at_path(self, name: str, groups: _Groups) -> list[ProteinFile]:
        """Return the proteins of a file that a table names by its path from the working directory or the root."""
        if "/" not in name and os.sep not in name:
            return []
        path = Path(os.path.abspath(name))
        return next((group for group in groups.values() if Path(os.path.abspath(group[0].path)) == path), [])

    def _absent_error(self, absent: dict[str, int], names: Iterable[str], table: LabelTable) -> AbsentFilesError:
        listed = list_first([f"{name!r} (row {row})" for name, row in absent.items()], SHOWN)
        hint = suggest(next(iter(absent)), names)
        verb = "is" if len(absent) == 1 else "are"
        subject = f"{table.where} names {count_noun(len(absent), 'file')} that {verb} not in {self.described}"
        more = " 'protgraph data inspect' lists all of them." if len(absent) > SHOWN else ""
        return AbsentFilesError(f"{subject}: {listed}.{hint}{more}", absent)

    def unnamed(self, used: Iterable[tuple[Path, str | None]]) -> list[str]:
        """Return the files without an example, given the locations of the examples."""
        locations = set(used)
        groups = self.groups([path.name for path, _ in locations])
        names = []
        for name, proteins in groups.items():
            if not any(protein.location in locations for protein in proteins):
                names.append(name)
        return names


def source_ids(proteins: Sequence[ProteinFile]) -> list[str]:
    """Return the ids of examples: the shortest name of each protein that is unique."""
    stems = Counter(protein.stem for protein in proteins)
    paths = Counter(file_stem(protein.name) for protein in proteins)

    def shortest(protein: ProteinFile) -> str:
        if stems[protein.stem] == 1:
            return protein.stem
        path = file_stem(protein.name)
        return path if protein.record is None and "/" in path and paths[path] == 1 else protein.name

    return [shortest(protein) for protein in proteins]


def _by_name(groups: _Groups) -> _Groups:
    """Return the proteins by every name that a table may use."""
    named: _Groups = {}
    for group in groups.values():
        for protein in group:
            own = {protein.stem, protein.name, *(protein.file_names() if len(group) == 1 else ())}
            for name in own:
                named.setdefault(name, []).append(protein)
    return named


def _by_lower_case(by_name: _Groups) -> _Groups:
    """Return the proteins by every name in lower case, each protein once."""
    lower: dict[str, dict[ProteinFile, None]] = {}
    for name, proteins in by_name.items():
        lower.setdefault(name.lower(), {}).update(dict.fromkeys(proteins))
    return {name: list(proteins) for name, proteins in lower.items()}


def file_stem(name: str) -> str:
    """Return a name or path without the suffixes of a protein file."""
    name = name[:-3] if name.lower().endswith(".gz") else name
    return name[: name.rindex(".")] if name.lower().endswith(protein_suffixes()) else name


def open_folder(source: object, *, fingerprint: Callable[[Path], Fingerprint] = fingerprint_file) -> ProteinFolder:
    """Return the proteins of a dataset argument; files are searched on first use, and a folder that is open stays.

    ``source``: folder, graph store, file, pattern, or a list of these.
    """
    if isinstance(source, ProteinFolder):
        return source
    if isinstance(source, GraphStore):
        return _StoreFolder(source)
    names = _source_names(source)
    if not names or "" in names:
        raise UnknownNameError("dataset: the name is empty. Give a folder, a file or a registered dataset.")
    if len(names) == 1 and is_store(names[0]):
        return _StoreFolder(open_store(names[0]))
    for name in names:
        if not (has_magic(name) or name.startswith("@") or is_store(name) or is_source(name)):
            registered = registry.datasets.names()
            raise UnknownNameError(
                f"dataset {name!r}: neither a registered dataset nor a folder or file."
                f"{suggest(Path(name).name, registered)}\n"
                f"Registered datasets: {', '.join(registered)}. Or give structure or FASTA files, or a graph store."
            )
    return _FileFolder(names, fingerprint)


def _source_names(source: object) -> list[str]:
    """Return the paths, patterns and accessions of a dataset argument."""
    names = [source] if isinstance(source, str | os.PathLike) else source
    if not isinstance(names, Sequence) or not all(isinstance(name, str | os.PathLike) for name in names):
        raise DatasetError(
            f"dataset: {type(source).__name__} is not a dataset. Allowed: the name of a registered dataset, a folder, "
            "file, pattern or graph store, a list of these, or a Dataset."
        )
    return [os.fspath(name) for name in names]


def _common_folder(files: Sequence[Path]) -> Path:
    """Return the deepest folder that contains all files."""
    folders = [os.path.abspath(path.parent) for path in files]
    try:
        return Path(os.path.relpath(os.path.commonpath(folders))) if folders else Path()
    except ValueError:  # Windows: files on several drives
        return Path()


class _FileFolder(ProteinFolder):
    """Structure and FASTA files of a folder or a list."""

    def __init__(self, names: Sequence[str], fingerprint: Callable[[Path], Fingerprint]) -> None:
        is_folder = len(names) == 1 and os.path.isdir(names[0])
        self.source = Path(names[0]) if is_folder else list(names)
        self._fingerprint_file = fingerprint
        self._fingerprints: dict[Path, Fingerprint] = {}

    @cached_property
    def _files(self) -> list[Path]:
        if isinstance(self.source, Path):
            return [Path(name) for name in self._of_folder.proteins]
        return local_files(self.source)

    @cached_property
    def _of_folder(self) -> FolderListing:
        return files_of_folder(self.source) if isinstance(self.source, Path) else FolderListing([], [])

    @cached_property
    def path(self) -> Path:
        return self.source if isinstance(self.source, Path) else _common_folder(self._files)

    @property
    def described(self) -> str:
        is_list = isinstance(self.source, list)
        return f"the list of {count_noun(len(self._files), 'file')}" if is_list else str(self.path)

    def other_files(self) -> list[str]:
        return [Path(name).relative_to(self.path).as_posix() for name in self._of_folder.others]

    def groups(self, names: Iterable[str] | None = None) -> _Groups:
        chosen = None if names is None else set(names)
        files = list(self._files)
        if chosen is not None:  # a table may name a file whatever its suffix is
            files += [self.path / name for name in self.other_files() if chosen & {name, Path(name).name}]
        if not files:
            allowed = ", ".join(protein_suffixes())
            raise DatasetError(
                f"folder {str(self.path)!r}: no structure or FASTA file ({allowed}, maybe .gz), also not in subfolders."
            )
        return {self._relative(path): self._proteins(path, chosen) for path in files}

    def fingerprint(self, path: Path, record: str | None) -> Fingerprint:
        return self._cached(path)

    def _relative(self, path: Path) -> str:
        return Path(os.path.relpath(path, self.path)).as_posix()

    def _proteins(self, path: Path, names: set[str] | None) -> list[ProteinFile]:
        """Return one protein of a structure file; of a FASTA file, each record.

        A file is opened once, by its fingerprint; files that a table does not name are only sniffed.
        """
        as_one = ProteinFile(path, relative=self._relative(path))
        is_used = names is None or path in self._fingerprints or bool(as_one.file_names() & names)
        if not is_used and not is_fasta(path):
            return [as_one]
        records = self._cached(path).records
        return [as_one] if records is None else [ProteinFile(path, record, as_one.relative) for record in records]

    def _cached(self, path: Path) -> Fingerprint:
        if path not in self._fingerprints:
            self._fingerprints[path] = self._fingerprint_file(path)
        return self._fingerprints[path]


class _StoreFolder(ProteinFolder):
    """Graph store; its proteins have the names of the files that they were read from."""

    def __init__(self, store: GraphStore) -> None:
        if not store.has_residues:
            raise DatasetError(f"graph store {str(store.path)!r} has no residues. Write it with 'protgraph featurize'.")
        self.source, self._store = Path(store.path), store
        self._number = {source: i for i, source in enumerate(store.sources)}

    @property
    def path(self) -> Path:
        return Path(self._store.path)

    def groups(self, names: Iterable[str] | None = None) -> _Groups:
        files: dict[str, tuple[Path, str | None]] = {}
        for source in self._store.sources:
            file, mark, name = source.rpartition("#")
            is_record = bool(mark) and is_protein_file(file)
            files[source] = Path(file if is_record else source), name if is_record else None
        root = os.path.commonpath([os.path.abspath(path.parent) for path, _ in files.values()]) if files else ""
        groups: _Groups = {}
        for source, (path, record) in files.items():
            relative = Path(os.path.relpath(os.path.abspath(path), root)).as_posix()
            groups.setdefault(relative, []).append(ProteinFile(path, record, relative, (self.path, source)))
        return groups

    def fingerprint(self, path: Path, record: str | None) -> Fingerprint:
        i = self._number[record or ""]
        return Fingerprint.from_residues(self._store.checksums[i], self._store.residues(i))
