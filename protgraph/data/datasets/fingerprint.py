"""What a file of proteins holds, as far as versions and splits of a dataset ask: its bytes and its sequences."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from protgraph.errors import ProtgraphError, StructureFileError
from protgraph.file_io import file_sha256
from protgraph.structure.io.fasta import is_fasta, read_fasta

if TYPE_CHECKING:
    from protgraph.structure.residues.residues import Residues

__all__ = ["Fingerprint", "fingerprint_file"]


@dataclass(frozen=True)
class Fingerprint:
    """Digests of a file.

    Parameters
    ----------
    digest : str
        SHA-256 of its bytes; empty where they cannot be had.
    sequences : mapping of str to str
        Chain of a structure, or record of a FASTA file, to the SHA-256 of its sequence, one letter a residue that is
        there; empty where no type is known. What cannot be read is left out.
    """

    digest: str
    sequences: Mapping[str, str] = field(default_factory=dict)

    def of(self, names: Collection[str] | None) -> Fingerprint:
        """The same of these chains or records alone; None takes all."""
        return self if names is None else Fingerprint(self.digest, {n: s for n, s in self.sequences.items() if n in names})

    @property
    def known(self) -> frozenset[str]:
        """Digests of the sequences by which proteins can be told to be the same."""
        return frozenset(self.sequences.values()) - {""}


def fingerprint_file(path: Path, *, read: Callable[[Path], Residues] | None = None) -> Fingerprint:
    """Look into a file.

    Parameters
    ----------
    path : Path
        Structure or FASTA file. One that cannot be read has no sequences: what is wrong with it is told where it is
        used.
    read : callable, optional
        Reads a structure file; by default :func:`protgraph.structure.load_structure` and ``clean`` do.
    """
    try:
        digest = file_sha256(path)
    except OSError:
        return Fingerprint("")
    found = _records(path) if is_fasta(path) else _chains(path, read or _read)
    return Fingerprint(digest, {name: _digest(sequence) for name, sequence in found.items()})


def _records(path: Path) -> dict[str, str]:
    """The sequence of each record that can be read."""
    found = {}
    try:
        for record in read_fasta(path):
            with contextlib.suppress(ProtgraphError):
                found[record.name] = record.residues().sequence
    except StructureFileError:
        pass
    return found


def _chains(path: Path, read: Callable[[Path], Residues]) -> dict[str, str]:
    """The sequence of each chain."""
    try:
        residues = read(path)
    except Exception:  # noqa: BLE001 -- parsers raise many things on broken files; told where the file is used
        return {}
    letters = np.array(list(residues.sequence))
    return {name: "".join(letters[residues.chain == name]) for name in residues.chain_names}


def _digest(sequence: str) -> str:
    return hashlib.sha256(sequence.encode()).hexdigest() if set(sequence) - {"X"} else ""


def _read(path: Path) -> Residues:
    from protgraph.structure import clean, load_structure

    return clean(load_structure(path))
