"""Bytes of a structure or sequence file, read once, with their SHA-256 and their format by content."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import zlib
from dataclasses import dataclass, field
from functools import cached_property

from protgraph.errors import StructureFileError
from protgraph.file_io import gunzip
from protgraph.registry import readers
from protgraph.structure.io.registered_readers import format_names, format_of, sequence_format, split_entry

__all__ = ["FileContent", "decode_text", "detect_format", "is_fasta", "read_file", "without_padding"]

_CIF = re.compile(rb"(?:\A\xef\xbb\xbf|^|\r)[ \t]*data_", re.MULTILINE | re.IGNORECASE)  # \r: old Macintosh
_RECORDS = rb"(?i:ATOM  |ATOM ?\d|HETATM)|MODEL |HEADER|TITLE |COMPND|SOURCE|EXPDTA|REMARK|SEQRES|CRYST1"
_PDB = re.compile(rb"(?:^|\r)(?:" + _RECORDS + rb")", re.MULTILINE)
_MSGPACK_MAP = tuple(bytes([b]) for b in (*range(0x80, 0x90), 0xDE, 0xDF))
_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_FASTA_BEGINS = b"> \t\n\r\v\f\xef"  # also of white space or a BOM before it
_TAR = slice(257, 262), b"ustar"  # place and value of the magic number of a tar archive
_HEAD = 4096  # bytes in which the first character of a file is looked for


@dataclass(frozen=True)
class FileContent:
    """One file after a single read.

    ``path``: path of the file, or "db:name" for an entry of a container. ``stored``: its bytes as stored, maybe
    gzipped.
    """

    path: str
    stored: bytes = field(repr=False)

    @cached_property
    def sha256(self) -> str:
        """Hexadecimal SHA-256 of the stored bytes."""
        return hashlib.sha256(self.stored).hexdigest()

    @cached_property
    def data(self) -> bytes:
        """Decompressed bytes.

        Raises :class:`StructureFileError` if the gzip stream is damaged or too large.
        """
        if not self.stored.startswith(_GZIP):
            return self.stored
        try:
            return gunzip(self.stored)
        except OverflowError as e:
            raise StructureFileError(f"{self.path}: {e}.") from e
        except (EOFError, OSError, zlib.error) as e:
            raise StructureFileError(f"{self.path}: the gzip stream is damaged or cut off ({e})") from e

    @cached_property
    def format(self) -> str:
        """Format by content: "pdb", "mmcif", "bcif", "fasta", or the name of a registered reader.

        Raises :class:`StructureFileError` if the format is not one of these.
        """
        form = sequence_format(self.path)
        if form is not None:
            return form
        return "fasta" if is_fasta(self) else detect_format(self.data, self.path)


def read_file(path: str | os.PathLike[str] | FileContent) -> FileContent:
    """Read a file, or the entry "db:name" of a container; return content that is already read as it is.

    Raises :class:`StructureFileError` if the file cannot be read. Raises :class:`SelectionError` if the container has
    no such entry.
    """
    if isinstance(path, FileContent):
        return path
    if not os.fspath(path):
        raise StructureFileError("path ''. Give a structure file, or pdb:1ubq, af:P69905.")
    if (entry := split_entry(path)) is not None:
        return FileContent(os.fspath(path), entry.reader.read(entry.container, entry.name))
    try:
        with open(path, "rb", buffering=0) as file:
            return FileContent(os.fspath(path), file.readall())
    except OSError as e:
        if os.path.isdir(path):
            raise StructureFileError(f"{path}: is a folder. Give structure files.") from e
        raise StructureFileError(f"{path}: {e.strerror or e}") from e


def is_fasta(file: str | os.PathLike[str] | FileContent) -> bool:
    """Return True if the first character of a file other than white space is ">".

    Of a path, only the beginning is read. False if that fails; the error is raised when the file is read.
    """
    data = file.data if isinstance(file, FileContent) else _head(file)
    if data[:1] not in _FASTA_BEGINS:
        return False
    return data[:_HEAD].removeprefix(_BOM).lstrip().startswith(b">")


def _head(path: str | os.PathLike[str]) -> bytes:
    """Return the first bytes of a file, decompressed; none if they cannot be read."""
    try:
        with open(path, "rb") as file:
            is_gzip = file.peek(2).startswith(_GZIP)
            return (gzip.GzipFile(fileobj=file) if is_gzip else file).read(_HEAD)
    except (OSError, EOFError, zlib.error):
        return b""


def detect_format(content: bytes, path: str | os.PathLike[str] = "content") -> str:
    """Return the format of an uncompressed structure file by content.

    "pdb", "mmcif", "bcif", or the name of a registered reader; these are asked about files that do not begin like one
    of the three.
    """
    if _PDB.match(content) and b"\0" not in content:  # most PDB files; the others are searched as a whole
        return "pdb"
    if not content[:_HEAD].strip() and not content.strip():
        raise StructureFileError(f"{path}: the file is empty")
    if content.startswith(_MSGPACK_MAP) and b"dataBlocks" in content:
        return "bcif"
    _refuse_unsupported(content, path)
    text = without_padding(content)
    if not _CIF.match(text):
        registered = format_of(content)
        if registered is not None:
            return registered
    form = _text_format(text)
    if form is None:
        raise StructureFileError(f"{path}: not a structure file (it begins {bytes(content[:24])!r}).\n{_readable()}")
    if b"\0" in text:
        raise StructureFileError(
            f"{path}: NUL bytes inside the text, the first one at byte {text.index(0)}. Allowed: text, with NUL "
            "bytes at its end only. Copy the file again."
        )
    return form


def _refuse_unsupported(content: bytes, path: str | os.PathLike[str]) -> None:
    if content.startswith(_MSGPACK_MAP) and b"mmtfVersion" in content:
        reason = "MMTF, a format that the PDB retired in 2024, is not supported"
        raise StructureFileError(f"{path}: {reason}.\n{_readable()}")
    if content[_TAR[0]] == _TAR[1]:
        raise StructureFileError(f"{path}: a tar archive. Extract it with tar -xf, and give its files.\n{_readable()}")


def _text_format(text: bytes) -> str | None:
    """Return "mmcif" or "pdb", wherever in the text it begins."""
    if _CIF.match(text) or (b"data_" in text.lower() and _CIF.search(text)):
        return "mmcif"
    return "pdb" if _PDB.search(text) else None


def _readable() -> str:
    """Return a sentence that lists the formats, and a line for each reader that cannot be loaded."""
    *names, last = ["PDB", "mmCIF", "BinaryCIF", *format_names()]
    problems = [f"\n{problem.message}" for problem in readers.problems(load=True)]
    return f"protgraph reads {', '.join(names)} and {last}, each also gzipped.{''.join(problems)}"


def without_padding(content: bytes) -> bytes:
    """Return the content of a text file without NUL bytes behind it, which some programs and copies append."""
    text = content.rstrip(b"\0 \t\r\n")
    return text if b"\0" in content[len(text) :] else content


def decode_text(content: bytes) -> str:
    """Decode UTF-8 (the standard), or else Latin-1 (old programs), which accepts every byte; without BOM."""
    content = content.removeprefix(_BOM)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("latin-1")
