"""Readers of other formats and of containers of many structures, registered in ``protgraph.readers``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, NamedTuple

from biotite.structure import AtomArray

from protgraph.errors import AlignmentError, ComponentError, ProtgraphError
from protgraph.registry import readers
from protgraph.structure.io.cif_column import DataBlock
from protgraph.structure.residues.alignment import Alignment
from protgraph.structure.residues.residues import Residues

__all__ = [
    "Entry",
    "ParsedFile",
    "Reader",
    "alignment_reader",
    "container_reader",
    "entry_name",
    "format_names",
    "format_of",
    "installed_readers",
    "sequence_format",
    "split_entry",
]


@dataclass(frozen=True)
class ParsedFile:
    """One model or assembly of a file, with all alternate locations.

    Parameters
    ----------
    atoms : AtomArray
        With annotations ``b_factor``, ``occupancy`` and ``altloc_id`` ("" where the atom has one location).
    format : str
        "pdb", "mmcif", "bcif", or the name of a registered reader.
    models : int
        Models in the file.
    warnings : tuple of str
        Warnings of the reader.
    predicted : bool
        True if the file declares that its B factors are pLDDT: by a metric of that name in ``ma_qa_metric`` (ModelCIF,
        AlphaFold), or by the TITLE of PDB files of the AlphaFold database.
    inferred_elements : int
        Atoms whose element is inferred from their name.
    block : DataBlock, optional
        Data block of an mmCIF or BinaryCIF file that the atoms are from.
    """

    atoms: AtomArray
    format: str
    models: int = 1
    warnings: tuple[str, ...] = ()
    predicted: bool = False
    inferred_elements: int = 0
    block: DataBlock | None = None


class Reader:
    """Base class of readers: of a file format, of a container of many structures, or of both.

    A format defines :meth:`recognizes` and :meth:`parse`. A container defines :meth:`matches`, :meth:`entries` and
    :meth:`read`; its entries are written "CONTAINER:NAME" in every command, and may have any format that protgraph
    reads. Register the class in the entry-point group ``protgraph.readers`` under the name of the format. An instance
    is made without arguments.
    """

    suffixes: ClassVar[tuple[str, ...]] = ()
    """Suffixes of the files that are read in a folder, in lower case, e.g. ``(".gro",)``."""

    sequence_suffixes: ClassVar[tuple[str, ...]] = ()
    """Suffixes of files of sequences, e.g. ``(".a3m",)``: read by their name, and not as proteins of a folder."""

    bytes_per_residue: ClassVar[float] = 900.0
    """Size of a file or entry per residue, from which the work of large sets is divided before files are read."""

    def recognizes(self, content: bytes) -> bool:
        """Return True for the content of a file of this format, decompressed; its first bytes decide."""
        return False

    def parse(self, content: bytes, path: str, model: int) -> ParsedFile:
        """Return the atoms of a model of a file, counted from 1.

        ``content``: decompressed content that the reader recognizes. ``path``: name of the file, for errors. Raises
        :class:`StructureFileError` if the file is damaged.
        """
        raise ComponentError(f"reader {type(self).__name__} recognizes files, but has no parse. Define it.")

    def matches(self, path: str) -> bool:
        """Return True if a path is a container of this reader, which must take microseconds: each file is asked."""
        return False

    def entries(self, path: str) -> Sequence[str]:
        """Return the names of the entries of a container, in the order in which they are stored."""
        raise ComponentError(f"reader {type(self).__name__} matches containers, but has no entries. Define it.")

    def read(self, path: str, name: str) -> bytes:
        """Return the content of an entry of a container.

        Raises :class:`SelectionError` if the container has no entry of this name. Raises :class:`StructureFileError` if
        the container is damaged.
        """
        raise ComponentError(f"reader {type(self).__name__} matches containers, but has no read. Define it.")

    def files(self, path: str) -> list[str]:
        """Return the files of a container, whose changes are changes of its entries."""
        return [path]

    def size(self, path: str, name: str) -> int | None:
        """Return the bytes of an entry if they are known without reading it, or else None."""
        return None

    def read_sequence(self, content: bytes, path: str) -> Residues:
        """Return the protein of a file that has sequences and no atoms, maybe with their alignment.

        It is asked for the files whose name has one of :attr:`sequence_suffixes`, also for those that begin like FASTA.
        """
        raise ComponentError(f"reader {type(self).__name__} has sequence_suffixes, but no read_sequence. Define it.")

    def align(self, residues: Residues, path: str) -> Alignment:
        """Return the alignment of a protein, of a file or a folder: that of the option ``--alignment``.

        Raises :class:`AlignmentError` if there is none, it cannot be read, or it is of another protein.
        """
        raise ComponentError(f"reader {type(self).__name__} reads no alignments. Define align.")

    def alignment_files(self, path: str) -> list[str]:
        """Return the files of ``--alignment``, whose changes make cached features invalid."""
        return [path]

    def example(self, folder: Path) -> Iterable[Path]:
        """Write a small file or container to a folder and return its path, for the conformity suite."""
        return ()


class Entry(NamedTuple):
    """Entry "CONTAINER:NAME" of a container that a reader reads."""

    reader: Reader
    container: str
    name: str


def installed_readers() -> dict[str, Reader]:
    """Return the registered readers by name; those that cannot be imported are left out."""
    return _load(tuple(readers.names()), readers.revision)


@lru_cache(maxsize=1)  # asked for every path
def _load(names: tuple[str, ...], revision: int) -> dict[str, Reader]:
    loaded: dict[str, Reader] = {}
    for name in names:
        try:
            loaded[name] = readers.get(name)()
        except ProtgraphError:  # protgraph doctor reports it, and so does a file that no reader recognizes
            continue
    return loaded


def format_of(content: bytes) -> str | None:
    """Return the name of the reader that recognizes the content of a file; None if there is none."""
    return next((name for name, reader in installed_readers().items() if reader.recognizes(content)), None)


def format_names() -> list[str]:
    """Return the names of the registered formats, without readers of containers alone."""
    return [name for name, reader in installed_readers().items() if type(reader).parse is not Reader.parse]


def container_reader(path: str | os.PathLike[str]) -> Reader | None:
    """Return the reader of a container; None for everything else, also for an entry."""
    text = os.fspath(path)
    return next((reader for reader in installed_readers().values() if reader.matches(text)), None)


def split_entry(source: str | os.PathLike[str]) -> Entry | None:
    """Return the container and the name of "CONTAINER:NAME"; None for everything else.

    Names may have colons; the container is the shortest part in front of a colon that is one.
    """
    text = os.fspath(source)
    colon = text.find(":")
    while colon > 0:
        reader = container_reader(text[:colon]) if colon + 1 < len(text) else None
        if reader is not None:
            return Entry(reader, text[:colon], text[colon + 1 :])
        colon = text.find(":", colon + 1)
    return None


def entry_name(source: str | os.PathLike[str]) -> str:
    """Return the name of an entry of "CONTAINER:NAME", or the file name of any other path."""
    entry = split_entry(source)
    return os.path.basename(source) if entry is None else entry.name


def sequence_format(path: str) -> str | None:
    """Return the name of the reader of a file of sequences without atoms, by its suffix; None for other files."""
    name = path.lower().removesuffix(".gz")
    return next((form for form, r in installed_readers().items() if name.endswith(r.sequence_suffixes)), None)


def alignment_reader() -> Reader:
    """Return the reader that has the alignments of proteins."""
    for reader in installed_readers().values():
        if type(reader).align is not Reader.align:
            return reader
    raise AlignmentError("no installed plugin reads alignments. Install protgraph with its plugin 'alignment'.")
