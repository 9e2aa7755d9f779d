"""The bytes of a structure file, and which format they are: recognized by content, never by suffix."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from pathlib import Path

from protgraph.errors import StructureFileError

__all__ = ["detect_format", "read_content"]

_CIF = re.compile(rb"^[ \t]*data_\S", re.MULTILINE | re.IGNORECASE)
_PDB = re.compile(rb"^(ATOM  |HETATM|MODEL |HEADER|TITLE |COMPND|SOURCE|EXPDTA|REMARK|SEQRES|CRYST1)", re.MULTILINE)
_MSGPACK_MAP = tuple(bytes([b]) for b in (*range(0x80, 0x90), 0xDE, 0xDF))


def read_content(path: Path) -> bytes:
    """The bytes of a file, decompressed where they are gzipped."""
    try:
        content = path.read_bytes()
    except OSError as e:
        raise StructureFileError(f"{path}: {e.strerror or e}") from e
    if not content.startswith(b"\x1f\x8b"):
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, OSError, zlib.error) as e:
        raise StructureFileError(f"{path}: the gzip stream is damaged or cut off ({e})") from e


def detect_format(content: bytes, path: str | os.PathLike[str] = "content") -> str:
    """The format of an uncompressed file by what is in it: "pdb", "mmcif" or "bcif".

    Raises
    ------
    StructureFileError
        Where it is none of them.
    """
    known = "protgraph reads PDB, mmCIF and BinaryCIF, each also gzipped."
    if not content.strip():
        raise StructureFileError(f"{path}: the file is empty")
    if content.startswith(_MSGPACK_MAP) and b"dataBlocks" in content:
        return "bcif"
    if content.startswith(_MSGPACK_MAP) and b"mmtfVersion" in content:
        raise StructureFileError(f"{path}: an MMTF file, a format that the PDB gave up in 2024.\n{known}")
    if b"\0" not in content:
        if b"data_" in content.lower() and _CIF.search(content):
            return "mmcif"
        if _PDB.search(content):
            return "pdb"
    raise StructureFileError(f"{path}: not a structure file (it begins {bytes(content[:24])!r}).\n{known}")
