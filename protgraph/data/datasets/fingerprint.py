"""Checksum and sequences of a protein file: what versions and splits of a dataset depend on."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from protgraph.errors import ProtgraphError, StructureFileError
from protgraph.structure.io.fasta import FastaRecord, read_fasta
from protgraph.structure.io.sniff import read_file

if TYPE_CHECKING:
    from protgraph.structure.io.read_options import ReadOptions
    from protgraph.structure.residues.residues import Residues

__all__ = ["Fingerprint", "chain_digests", "fingerprint_file"]


@dataclass(frozen=True)
class Fingerprint:
    """Digests of a file."""

    digest: str  # SHA-256 of its bytes; empty if it cannot be read
    # chain of a structure, or record of a FASTA file, to the SHA-256 of its sequence of one-letter codes; empty if
    # all types are unknown. Chains and records that cannot be read are absent
    sequences: Mapping[str, str] = field(default_factory=dict)
    records: tuple[str, ...] | None = None  # names of the records of a FASTA file; None for a structure
    lengths: Mapping[str, int] = field(default_factory=dict)  # chain or record to its number of residues
    # record of a FASTA file to its chain; empty for a structure
    chains: Mapping[str, str] = field(default_factory=dict)

    def of(self, names: Collection[str] | None) -> Fingerprint:
        """Return the fingerprint of these chains or records alone; None keeps all."""
        if names is None:
            return self
        return replace(
            self,
            sequences={name: digest for name, digest in self.sequences.items() if name in names},
            lengths={name: length for name, length in self.lengths.items() if name in names},
            chains={name: chain for name, chain in self.chains.items() if name in names},
        )

    @property
    def known(self) -> frozenset[str]:
        """Digests of the sequences with at least one type that is not X."""
        return frozenset(self.sequences.values()) - {""}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Fingerprint:
        """Return the fingerprint of :func:`dataclasses.asdict`."""
        records = data["records"]
        records = None if records is None else tuple(records)
        return cls(data["digest"], dict(data["sequences"]), records, dict(data["lengths"]), dict(data["chains"]))

    @classmethod
    def from_residues(cls, digest: str, residues: Residues) -> Fingerprint:
        """Return the fingerprint of a structure."""
        lengths = {name: int((residues.chain == name).sum()) for name in residues.chain_names}
        return cls(digest, chain_digests(residues), None, lengths)


def fingerprint_file(path: Path, *, read: ReadOptions | None = None) -> Fingerprint:
    """Compute the digests of a file, which is opened once."""
    from protgraph.structure.io.sources import read_residues

    try:
        file = read_file(path)
    except StructureFileError:
        return Fingerprint("")
    try:
        if file.format == "fasta":
            return _fasta(file.sha256, read_fasta(file))
        residues = read_residues(file, read)
    except Exception:  # noqa: BLE001 -- parsers raise many types of error; they are raised again where the file is used
        return Fingerprint(file.sha256)
    return Fingerprint.from_residues(file.sha256, residues)


def chain_digests(residues: Residues) -> dict[str, str]:
    """Return the digest of the sequence of each chain."""
    letters = np.array(list(residues.sequence))
    return {name: _digest("".join(letters[residues.chain == name])) for name in residues.chain_names}


def _fasta(sha256: str, records: list[FastaRecord]) -> Fingerprint:
    sequences, lengths = {}, {}
    for record in records:
        try:
            residues = record.residues()
        except ProtgraphError:
            continue  # listed as a failure when the record is read
        sequences[record.name], lengths[record.name] = _digest(residues.sequence), len(residues)
    names = tuple(record.name for record in records)
    return Fingerprint(sha256, sequences, names, lengths, {record.name: record.chain for record in records})


def _digest(sequence: str) -> str:
    return hashlib.sha256(sequence.encode()).hexdigest() if set(sequence) - {"X"} else ""
