"""Proteins of a folder or graph store before they are read: structure files, FASTA records, and their names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from protgraph.data.datasets.fingerprint import Fingerprint, chain_digests, fingerprint_file
from protgraph.data.datasets.labels import SHOWN
from protgraph.data.store.graph_store import GraphStore, is_store
from protgraph.errors import DatasetError, LabelError, list_first
from protgraph.structure.io.sniff import is_fasta
from protgraph.structure.io.sources import SUFFIXES, is_protein_file

if TYPE_CHECKING:
    from protgraph.data.datasets.dataset import Example

__all__ = ["ProteinFile", "ProteinFolder", "open_folder", "source_ids"]


@dataclass(frozen=True)
class ProteinFile:
    """A structure file, or one record of a FASTA file.

    Parameters
    ----------
    path : Path
    record : str, optional
        Name of the FASTA record; None for a structure.
    place : tuple of (Path, str or None), optional
        Path and record to read it from, if these are others: a graph store and the source of one of its proteins.
    """

    path: Path
    record: str | None = None
    place: tuple[Path, str | None] | None = None

    @property
    def name(self) -> str:
        """Name of the file; for a record, followed by "#" and its name."""
        return self.path.name if self.record is None else f"{self.path.name}#{self.record}"

    @property
    def stem(self) -> str:
        """Name of the file without suffixes, or name of the record."""
        return _stem(self.path) if self.record is None else self.record

    @property
    def location(self) -> tuple[Path, str | None]:
        """Path and record from which the protein is read."""
        return self.place or (self.path, self.record)


class ProteinFolder(ABC):
    """Proteins of a folder of files or of a graph store."""

    path: Path

    @abstractmethod
    def groups(self, names: Iterable[str] | None = None) -> dict[str, list[ProteinFile]]:
        """Return the proteins of each file by its name.

        ``names`` of a table help to read fewer files; files that they do not name may lack the names of records only
        if they are not FASTA.
        """

    @abstractmethod
    def fingerprint(self, example: Example) -> Fingerprint:
        """Return the fingerprint of the file of an example."""

    def proteins(self) -> list[ProteinFile]:
        """Return all proteins.

        Raises
        ------
        DatasetError
            There are none.
        """
        return [protein for group in self.groups().values() for protein in group]

    def named(self, names: Sequence[str], where: str) -> tuple[list[ProteinFile], list[int]]:
        """Return the proteins that a table names, and for each of its rows the place of its protein among them.

        Parameters
        ----------
        names : sequence of str
            For each row: name of a file with or without suffix, name of a record, or both joined by "#".
        where : str
            Name of the table in errors.

        Raises
        ------
        LabelError
            A name is in no file, or in several.
        """
        groups = self.groups(names)
        by_name = _by_name(groups)
        chosen: dict[str, ProteinFile] = {}
        absent: list[str] = []
        for name in dict.fromkeys(names):
            matches = groups.get(name) or by_name.get(name, [])
            if len(matches) > 1:
                shown = list_first([protein.name for protein in matches], SHOWN)
                raise LabelError(f"{where}: {name!r} is ambiguous: {shown}. Give the whole name.")
            chosen |= {name: matches[0]} if matches else {}
            absent += [] if matches else [name]
        if absent:
            shown = list_first(list(map(repr, absent)), SHOWN)
            raise LabelError(f"{where} names {len(absent)} files that are not in {self.path}: {shown}")
        proteins = list(dict.fromkeys(chosen.values()))
        place = {protein: i for i, protein in enumerate(proteins)}
        return proteins, [place[chosen[name]] for name in names]

    def unnamed(self, examples: Sequence[Example]) -> list[str]:
        """Return the names of files without an example."""
        used = {(example.path, example.record) for example in examples}
        groups = self.groups([example.path.name for example in examples])
        return [name for name, group in groups.items() if not any(protein.location in used for protein in group)]


def open_folder(
    path: str | Path | GraphStore, *, fingerprint: Callable[[Path], Fingerprint] = fingerprint_file
) -> ProteinFolder:
    """Return the proteins of a folder of files or of a graph store.

    Parameters
    ----------
    path : str, Path or GraphStore
    fingerprint : callable
        Function of a path that returns its :class:`Fingerprint`, e.g. from a cache.

    Raises
    ------
    DatasetError
        The folder does not exist, or the store has no residues.
    """
    if isinstance(path, GraphStore) or is_store(path):
        return _StoreFolder(path if isinstance(path, GraphStore) else GraphStore(path))
    return _FileFolder(Path(path), fingerprint)


def source_ids(proteins: Sequence[ProteinFile]) -> list[str]:
    """Return the ids of examples: the shortest name of each protein that is unique."""
    count = Counter(protein.stem for protein in proteins)
    return [protein.stem if count[protein.stem] == 1 else protein.name for protein in proteins]


class _FileFolder(ProteinFolder):
    """Folder of structure and FASTA files; its subfolders are not searched."""

    def __init__(self, path: Path, fingerprint: Callable[[Path], Fingerprint]) -> None:
        if not path.is_dir():
            raise DatasetError(f"no folder of structures at {str(path)!r}")
        self.path, self._fingerprint_file = path, fingerprint
        self._files = sorted(p for p in path.iterdir() if is_protein_file(p) and p.is_file())
        self._fingerprints: dict[Path, Fingerprint] = {}

    def groups(self, names: Iterable[str] | None = None) -> dict[str, list[ProteinFile]]:
        chosen = None if names is None else set(names)
        files = list(self._files)
        if chosen is not None:  # a table may name a file whatever its suffix is
            others = (self.path / name for name in sorted(chosen) if name and Path(name).name == name)
            files += [p for p in others if p not in self._files and p.is_file()]
        if not files:
            allowed = ", ".join(SUFFIXES)
            raise DatasetError(
                f"folder {str(self.path)!r} holds no structure or FASTA file ({allowed}, maybe .gz).\n"
                "Subfolders are not searched."
            )
        return {path.name: self._proteins(path, chosen) for path in files}

    def fingerprint(self, example: Example) -> Fingerprint:
        return self._cached(example.path)

    def _proteins(self, path: Path, names: set[str] | None) -> list[ProteinFile]:
        """Return one protein of a structure file; of a FASTA file, each record.

        A file is opened once, by its fingerprint; files that a table does not name are only sniffed.
        """
        is_used = names is None or path in self._fingerprints or path.name in names or _stem(path) in names
        if not is_used and not is_fasta(path):
            return [ProteinFile(path)]
        records = self._cached(path).records
        return [ProteinFile(path)] if records is None else [ProteinFile(path, record) for record in records]

    def _cached(self, path: Path) -> Fingerprint:
        if path not in self._fingerprints:
            self._fingerprints[path] = self._fingerprint_file(path)
        return self._fingerprints[path]


class _StoreFolder(ProteinFolder):
    """Graph store; its proteins have the names of the files that they were read from."""

    def __init__(self, store: GraphStore) -> None:
        if not store.has_residues:
            raise DatasetError(f"graph store {str(store.path)!r} has no residues. Write it with 'protgraph featurize'.")
        self.path, self._store = store.path, store
        self._number = {source: i for i, source in enumerate(store.sources)}

    def groups(self, names: Iterable[str] | None = None) -> dict[str, list[ProteinFile]]:
        groups: dict[str, list[ProteinFile]] = {}
        for source in self._store.sources:
            file, mark, record = source.rpartition("#")
            is_record = bool(mark) and is_protein_file(file)
            path = Path(file if is_record else source)
            protein = ProteinFile(path, record if is_record else None, (self.path, source))
            groups.setdefault(path.name, []).append(protein)
        return groups

    def fingerprint(self, example: Example) -> Fingerprint:
        i = self._number[example.record]
        return Fingerprint(self._store.checksums[i], chain_digests(self._store.residues(i)))


def _by_name(groups: dict[str, list[ProteinFile]]) -> dict[str, list[ProteinFile]]:
    """Return the proteins by every name that a table may use."""
    named: dict[str, list[ProteinFile]] = {}
    for file, group in groups.items():
        for protein in group:
            names = {protein.stem, protein.name, *([_stem(protein.path), file] if len(group) == 1 else [])}
            for name in names:
                named.setdefault(name, []).append(protein)
    return named


def _stem(path: Path) -> str:
    """Return the name without the suffixes of a protein file."""
    name = path.name[:-3] if path.name.lower().endswith(".gz") else path.name
    return name[: name.rindex(".")] if name.lower().endswith(SUFFIXES) else name
