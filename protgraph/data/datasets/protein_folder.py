"""Folders and lists of structure and FASTA files, and graph stores, as proteins to be named and read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from protgraph.data.datasets.fingerprint import Fingerprint, fingerprint_file
from protgraph.data.datasets.protein_files import ProteinFile, ProteinFolder
from protgraph.data.store.graph_store import GraphStore
from protgraph.data.store.open_store import open_store
from protgraph.data.store.store_files import is_store
from protgraph.errors import DatasetError
from protgraph.structure.io.archives import as_accession, fetch
from protgraph.structure.io.registered_readers import container_reader, split_entry
from protgraph.structure.io.sniff import is_fasta
from protgraph.structure.io.sources import expand_files, files_in, is_protein_file, protein_files_in, protein_suffixes
from protgraph.wording import count_noun

__all__ = ["open_folder"]


def open_folder(
    source: str | Path | GraphStore | ProteinFolder | Sequence[str | os.PathLike[str]],
    *,
    fingerprint: Callable[[Path], Fingerprint] = fingerprint_file,
) -> ProteinFolder:
    """Return the proteins of a folder, files or a graph store; a folder that is open stays as it is."""
    if isinstance(source, ProteinFolder):
        return source
    if isinstance(source, GraphStore) or (isinstance(source, str | Path) and is_store(source)):
        return _StoreFolder(source if isinstance(source, GraphStore) else open_store(source))
    if isinstance(source, str | os.PathLike) and Path(source).is_dir():
        path = Path(source)
        files = files_in(path)
        inside = {file for p in files if (reader := container_reader(p)) for file in reader.files(str(p))}
        others = [p for p in files if not (is_protein_file(p) or str(p) in inside)]
        names = [p.relative_to(path).as_posix() for p in others]
        return _FileFolder(path, protein_files_in(path), fingerprint, names)
    is_one = isinstance(source, str | os.PathLike)
    if is_one and not (Path(source).is_file() or "*" in str(source) or split_entry(source) is not None):
        raise DatasetError(f"no folder of structures at {str(source)!r}")
    names = [fetch(entry) if (entry := as_accession(name)) else Path(name) for name in expand_files(source)]
    return _FileFolder(_common_folder(names), names, fingerprint, is_list=True)


def _common_folder(files: Sequence[Path]) -> Path:
    """Return the deepest folder that contains all files."""
    folders = [os.path.abspath(path.parent) for path in files]
    try:
        return Path(os.path.relpath(os.path.commonpath(folders))) if folders else Path()
    except ValueError:  # Windows: files on several drives
        return Path()


class _FileFolder(ProteinFolder):
    """Structure and FASTA files of a folder or a list."""

    def __init__(
        self,
        path: Path,
        files: Sequence[Path],
        fingerprint: Callable[[Path], Fingerprint],
        others: Sequence[str] = (),
        *,
        is_list: bool = False,
    ) -> None:
        self._is_list = is_list
        self.path, self._fingerprint_file = path, fingerprint
        self._files, self._others = list(files), list(others)
        self._fingerprints: dict[Path, Fingerprint] = {}

    @property
    def described(self) -> str:
        return f"the list of {count_noun(len(self._files), 'file')}" if self._is_list else str(self.path)

    def other_files(self) -> list[str]:
        return self._others

    def groups(self, names: Iterable[str] | None = None) -> dict[str, list[ProteinFile]]:
        chosen = None if names is None else set(names)
        files = list(self._files)
        if chosen is not None:  # a table may name a file whatever its suffix is
            files += [self.path / name for name in self._others if chosen & {name, Path(name).name}]
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
        whole = ProteinFile(path, relative=self._relative(path))
        is_used = names is None or path in self._fingerprints or bool(whole.file_names() & names)
        if not is_used and not is_fasta(path):
            return [whole]
        records = self._cached(path).records
        return [whole] if records is None else [ProteinFile(path, record, whole.relative) for record in records]

    def _cached(self, path: Path) -> Fingerprint:
        if path not in self._fingerprints:
            self._fingerprints[path] = self._fingerprint_file(path)
        return self._fingerprints[path]


class _StoreFolder(ProteinFolder):
    """Graph store; its proteins have the names of the files that they were read from."""

    def __init__(self, store: GraphStore) -> None:
        if not store.has_residues:
            raise DatasetError(f"graph store {str(store.path)!r} has no residues. Write it with 'protgraph featurize'.")
        self.path, self._store = Path(store.path), store
        self._number = {source: i for i, source in enumerate(store.sources)}

    def groups(self, names: Iterable[str] | None = None) -> dict[str, list[ProteinFile]]:
        files: dict[str, tuple[Path, str | None]] = {}
        for source in self._store.sources:
            file, mark, record = source.rpartition("#")
            is_record = bool(mark) and is_protein_file(file)
            files[source] = Path(file if is_record else source), record if is_record else None
        root = os.path.commonpath([os.path.abspath(path.parent) for path, _ in files.values()]) if files else ""
        groups: dict[str, list[ProteinFile]] = {}
        for source, (path, record) in files.items():
            relative = Path(os.path.relpath(os.path.abspath(path), root)).as_posix()
            groups.setdefault(relative, []).append(ProteinFile(path, record, relative, (self.path, source)))
        return groups

    def fingerprint(self, path: Path, record: str | None) -> Fingerprint:
        i = self._number[record]
        return Fingerprint.from_residues(self._store.checksums[i], self._store.residues(i))
