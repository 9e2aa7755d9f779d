"""Sources of proteins: files, folders, patterns, lists and archive entries, expanded to files and read one by one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from glob import glob, has_magic
from pathlib import Path
from typing import NamedTuple

from protgraph.errors import SelectionError, StructureFileError
from protgraph.structure.io.archives import as_accession, fetch, parse_accession
from protgraph.structure.io.fasta import FASTA_SUFFIXES, read_fasta
from protgraph.structure.io.load import load_structure
from protgraph.structure.io.read_options import ReadOptions
from protgraph.structure.io.registered_readers import (
    Reader,
    container_reader,
    installed_readers,
    sequence_format,
    split_entry,
)
from protgraph.structure.io.sniff import FileContent, read_file
from protgraph.structure.residues.clean import clean
from protgraph.structure.residues.residues import Residues

__all__ = [
    "FolderListing",
    "ProteinSource",
    "expand_files",
    "expand_lists",
    "files_of_folder",
    "is_protein_file",
    "is_source",
    "local_files",
    "open_source",
    "protein_suffixes",
    "proteins_of",
    "read_residues",
]

_STRUCTURE_SUFFIXES = (".pdb", ".ent", ".cif", ".mmcif", ".bcif")


@dataclass(frozen=True)
class ProteinSource:
    """One protein of a file.

    ``label``: unique name: the path; for a FASTA record, the path, "#" and the record's name. ``read``: return the
    residues, or raise. ``record``: name of the FASTA record; None for a structure.
    """

    label: str
    read: Callable[[], Residues]
    record: str | None = None


def protein_suffixes() -> tuple[str, ...]:
    """Return the suffixes of protein files in a folder, with those of registered readers."""
    registered = [suffix for reader in installed_readers().values() for suffix in reader.suffixes]
    return (*_STRUCTURE_SUFFIXES, *registered, *FASTA_SUFFIXES)


def is_protein_file(path: str | os.PathLike[str]) -> bool:
    """Return True for a name with the suffix of a structure or FASTA file, maybe followed by .gz."""
    return os.fspath(path).lower().removesuffix(".gz").endswith(protein_suffixes())


def is_source(source: str | os.PathLike[str]) -> bool:
    """Return True for an existing file or folder, an accession, and an entry "db:name" of a container."""
    return Path(source).exists() or as_accession(source) is not None or split_entry(source) is not None


def _walk(folder: str | os.PathLike[str]) -> list[str]:
    """Return the files of a folder and its subfolders in the order of the paths, without hidden ones."""
    paths: list[str] = []
    for place, folders, names in os.walk(Path(folder), followlinks=True):
        folders[:] = [name for name in folders if not name.startswith(".")]
        below = "" if place == "." else os.path.join(place, "")
        paths += [below + name for name in names if not name.startswith(".")]
    return sorted(filter(os.path.isfile, paths), key=lambda path: path.split(os.sep))


def expand_files(sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    """Return the files of sources, each once, in order.

    ``sources``: a file; a folder, which is searched recursively for files with one of :func:`protein_suffixes` (see
    :func:`files_of_folder`); a pattern such as "*.cif" or "**/*.pdb"; "@list.txt" for the lines of a file. Accessions
    such as "pdb:1ubq" and "af:P69905" stay, to be fetched when they are read, and so do entries "db:name" of a
    container, e.g. of a foldcomp database. A container itself, also in a folder, gives all of its entries in the order
    of the file. A file that does not exist stays, and fails when it is read. Raises :class:`StructureFileError` if a
    folder holds no protein file, a pattern matches nothing, or a missing file looks like an accession. Raises
    :class:`SelectionError` if the text after "pdb:" or "af:" is not an identifier.
    """
    files: dict[str, None] = {}
    for text in expand_lists([sources] if isinstance(sources, str | os.PathLike) else sources):
        files |= dict.fromkeys(_expanded(text))
    return list(files)


def _expanded(text: str) -> Iterable[str]:
    """Return the files of one source."""
    if as_accession(text) is not None or split_entry(text) is not None:
        return [_normal(text)]
    if (reader := container_reader(text)) is not None:
        return _entries(reader, _normal(text))
    if os.path.isfile(text):
        return [_normal(text)]
    if not os.path.isdir(text):
        return _matching(text)
    inside = files_of_folder(text).proteins
    if not inside:
        allowed = ", ".join(protein_suffixes())
        raise StructureFileError(f"folder {text!r} holds no structure or FASTA file ({allowed}, maybe .gz)")
    return inside


def _normal(text: str) -> str:
    """Return a path without "." and repeated or final separators, as pathlib does."""
    is_normal = "./" not in text and "//" not in text and not text.endswith(("/", "/.")) and os.sep == "/"
    return text if is_normal else str(Path(text))


def _entries(reader: Reader, container: str) -> Iterator[str]:
    return (f"{container}:{name}" for name in reader.entries(container))


class FolderListing(NamedTuple):
    """Files of a folder: those with proteins, "db:name" for entries of containers, and all others."""

    proteins: list[str]
    others: list[str]


def files_of_folder(folder: str | os.PathLike[str]) -> FolderListing:
    """Return the structure and FASTA files of a folder and its subfolders, and the others, sorted.

    Names that begin with "." are left out, e.g. the resource forks ``._1ubq.pdb`` of macOS and ``.ipynb_checkpoints``.
    Files of a container are no others.
    """
    registered, suffixes = list(installed_readers().values()), protein_suffixes()
    proteins: list[str] = []
    further: list[str] = []
    of_containers: set[str] = set()
    for path in _walk(folder):
        reader = next((reader for reader in registered if reader.matches(path)), None)
        if reader is not None:
            proteins += _entries(reader, path)
            of_containers.update(reader.files(path))
        elif path.lower().removesuffix(".gz").endswith(suffixes):
            proteins.append(path)
        else:
            further.append(path)
    return FolderListing(proteins, [path for path in further if path not in of_containers])


def local_files(sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[Path]:
    """Return the files of :func:`expand_files`, with archive entries as the files that they are fetched to."""
    paths = []
    for name in expand_files(sources):
        accession = as_accession(name)
        paths.append(Path(name) if accession is None else fetch(accession))
    return paths


def expand_lists(sources: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Replace each "@list.txt" by the lines of that file; empty lines and lines that begin with "#" are skipped."""
    expanded: list[str] = []
    for source in sources:
        text = os.fspath(source)
        if not text.startswith("@"):
            expanded.append(text)
            continue
        try:
            lines = Path(text[1:]).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as e:
            raise StructureFileError(f"the list {text[1:]!r} cannot be read: {e}") from e
        expanded += [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return expanded


def _matching(text: str) -> list[str]:
    """Return the files that match a pattern; return a missing file as it is."""
    if has_magic(text):
        matches = [p for p in sorted(glob(text, recursive=True)) if Path(p).is_file()]
        if not matches:
            raise StructureFileError(f"no file matches {text!r}")
        return matches
    try:
        entry = parse_accession(text)
    except SelectionError:
        return [text]
    raise StructureFileError(f"no file {text!r}. To fetch the archive entry, write {entry.archive}:{entry.id}.")


def open_source(source: str | os.PathLike[str]) -> FileContent:
    """Read the bytes of a file or an archive entry.

    Raises :class:`StructureFileError` if the file cannot be read. Raises :class:`FetchError` if the archive entry
    cannot be fetched.
    """
    accession = as_accession(source)
    return read_file(source if accession is None else fetch(accession))


def proteins_of(file: FileContent, read: ReadOptions, *, label: str | None = None) -> list[ProteinSource]:
    """Return the proteins of a file: a structure is one protein, and so is each FASTA record.

    ``label``: name of the file in labels; its path by default. Raises :class:`StructureFileError` if the format is not
    known, or a FASTA file cannot be parsed. Errors of a structure are raised when it is read. Raises
    :class:`SelectionError` if no FASTA record is of the chains.
    """
    label = file.path if label is None else label
    if file.format != "fasta":
        return [ProteinSource(label, cache(partial(read_residues, file, read)))]
    records = read_fasta(file)
    selected = [record for record in records if read.chains is None or record.chain in read.chains]
    if not selected:
        raise SelectionError(f"{records[0].path}: no record is of chain {' or '.join(map(repr, read.chains or ()))}")
    return [ProteinSource(f"{label}#{record.name}", record.residues, record.name) for record in selected]


def read_residues(file: str | os.PathLike[str] | FileContent, read: ReadOptions | None = None) -> Residues:
    """Return the residues of a structure file, or of a file of sequences of a registered reader."""
    read = read or ReadOptions()
    path = file.path if isinstance(file, FileContent) else os.fspath(file)
    form = sequence_format(path)
    if form is not None:
        residues = installed_readers()[form].read_sequence(read_file(file).data, path)
        return residues if read.chains is None else residues.chains(read.chains)
    structure = load_structure(file, model_number=read.model_number, altloc=read.altloc, assembly=read.assembly)
    return clean(structure, chains=read.chains, ligands=read.ligands, nucleic=read.nucleic)
