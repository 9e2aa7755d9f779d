"""Residues and fingerprints of files, cached by the bytes of the file, the read options and the code of the reader."""

from __future__ import annotations

import json
import zipfile
from dataclasses import asdict
from pathlib import Path

import numpy as np

from protgraph.data.cache_key import code_digest, digest, stamps
from protgraph.data.datasets.fingerprint import Fingerprint, fingerprint_file
from protgraph.data.store.residue_arrays import residues_from_arrays, residues_to_arrays
from protgraph.file_io import atomic_write
from protgraph.structure.io.read_options import ReadOptions
from protgraph.structure.io.sniff import FileContent, read_file
from protgraph.structure.io.sources import read_residues
from protgraph.structure.residues.residues import Residues

__all__ = ["FileCache"]


class FileCache:
    """Cache of structure files; a file is opened again only if its size or modification time changes.

    Parameters
    ----------
    folder : str or Path
        Folder of the cache; see :func:`protgraph.structure.io.cache_dir`.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def fingerprint(self, path: Path, read: ReadOptions | None = None) -> Fingerprint:
        """Return the checksum and the sequences of a file, with residues read by ``read``."""
        read = read or ReadOptions()
        key = digest(stamps([path.absolute()]), read.to_dict(), code_digest("protgraph.structure"))
        entry = self.folder / "contents" / key[:2] / f"{key}.json"
        try:
            return Fingerprint.from_dict(json.loads(entry.read_text("utf-8")))
        except (OSError, ValueError, TypeError, KeyError):
            pass  # missing or damaged
        fingerprint = fingerprint_file(path, read=lambda file: self._residues(file, read))
        with atomic_write(entry) as temporary:
            temporary.write_text(json.dumps(asdict(fingerprint)), encoding="utf-8")
        return fingerprint

    def residues(self, path: Path, read: ReadOptions) -> tuple[Residues, str] | FileContent:
        """Return the residues of a structure file and its SHA-256, or the content of a file that is not one structure.

        Raises
        ------
        StructureFileError, SelectionError, EmptyStructureError
            See :func:`protgraph.structure.load_structure`.
        """
        record = self._record(path)
        try:
            sha256 = json.loads(record.read_text("utf-8"))["sha256"]
        except (OSError, ValueError, TypeError, KeyError):
            sha256 = ""
        if sha256 and (residues := self._cached(Path(path), sha256, read)) is not None:
            return residues, sha256
        file = read_file(path)
        if file.format == "fasta":
            return file
        return self._residues(file, read), file.sha256

    def _residues(self, file: FileContent, read: ReadOptions) -> Residues:
        path = Path(file.path)
        with atomic_write(self._record(path)) as temporary:
            temporary.write_text(json.dumps({"sha256": file.sha256}), encoding="utf-8")
        if (residues := self._cached(path, file.sha256, read)) is not None:
            return residues
        residues = read_residues(file, read)
        arrays, plain = residues_to_arrays(residues)
        arrays["plain"] = np.array(json.dumps(plain))
        with atomic_write(self._entry(path, file.sha256, read)) as temporary, temporary.open("wb") as target:
            np.savez(target, allow_pickle=False, **arrays)
        return residues

    def _cached(self, path: Path, sha256: str, read: ReadOptions) -> Residues | None:
        entry = self._entry(path, sha256, read)
        if not entry.is_file():
            return None
        try:
            with np.load(entry, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            return residues_from_arrays(arrays, json.loads(str(arrays.pop("plain"))))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None  # damaged; it is read again

    def _record(self, path: Path) -> Path:
        key = digest(stamps([Path(path).absolute()]))
        return self.folder / "checksums" / key[:2] / f"{key}.json"

    def _entry(self, path: Path, sha256: str, read: ReadOptions) -> Path:
        key = digest(sha256, path.name, read.to_dict(), code_digest("protgraph.structure"))
        return self.folder / "residues" / key[:2] / f"{key}.npz"
