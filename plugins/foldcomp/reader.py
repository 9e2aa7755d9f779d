"""Reader of foldcomp entries and databases."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from protgraph_plugins.foldcomp.database import FILES, open_foldcomp_database
from protgraph_plugins.foldcomp.entry import MAGIC, foldcomp_text

from protgraph.structure import ParsedFile, Reader
from protgraph.structure.io import FileContent, read_atoms

__all__ = ["FoldcompReader"]

ENTRY_POINTS = {"protgraph.readers": {"foldcomp": "FoldcompReader"}}

_ALPHAFOLD_ID = re.compile(r"^TITLE +AF-[A-Z0-9]+-F[0-9]+(-model_v[0-9]+)? *$", re.MULTILINE)


class FoldcompReader(Reader):
    """Reader of compressed protein chains: files ``.fcz``, and databases with a file ``.index`` and ``.lookup``.

    Entries are decompressed to PDB text by the foldcomp package. Models of AlphaFold DB have their identifier as title.
    """

    suffixes = (".fcz",)
    bytes_per_residue = 16.0

    def recognizes(self, content: bytes) -> bool:
        """Return True for the first bytes of an entry."""
        return content.startswith(MAGIC)

    def parse(self, content: bytes, path: str, model: int) -> ParsedFile:
        """Decompress an entry and read its PDB text."""
        text, made_up = foldcomp_text(content, path)
        parsed = read_atoms(FileContent(path, text.encode()), model=model)
        predicted = parsed.predicted or _ALPHAFOLD_ID.search(text) is not None
        return replace(parsed, warnings=(*made_up, *parsed.warnings), predicted=predicted)

    def matches(self, path: str) -> bool:
        """Return True for a database: a file with an index and a lookup table beside it."""
        return os.path.isfile(f"{path}.index") and os.path.isfile(f"{path}.lookup") and os.path.isfile(path)

    def entries(self, path: str) -> Sequence[str]:
        """Return the names of the entries of a database, in the order of its file."""
        return open_foldcomp_database(path)

    def read(self, path: str, name: str) -> bytes:
        """Return an entry of a database."""
        return open_foldcomp_database(path).read(name)

    def files(self, path: str) -> list[str]:
        """Return the files of a database."""
        return [f"{path}{suffix}" for suffix in FILES if os.path.isfile(f"{path}{suffix}")]

    def example(self, folder: Path) -> list[Path]:
        """Write crambin (PDB entry 1crn) as a file, and twice as a database."""
        entry = Path(__file__).with_name("1crn.fcz").read_bytes()
        single, database = folder / "example.fcz", folder / "database"
        single.write_bytes(entry)
        database.write_bytes(2 * (entry + b"\0"))
        size = len(entry) + 1
        Path(f"{database}.index").write_text(f"0\t0\t{size}\n1\t{size}\t{size}\n")
        Path(f"{database}.lookup").write_text("0\tfirst\t0\n1\tsecond\t0\n")
        return [single, database]

    def size(self, path: str, name: str) -> int | None:
        """Return the size of an entry in bytes."""
        return open_foldcomp_database(path).size_of(name)
