"""Structure or sequences on standard input: ``-`` in place of a file."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from protgraph.errors import OptionError

__all__ = ["with_standard_input"]

#: First bytes of a file → suffix.
_SUFFIXES = ((b"\x1f\x8b", ".gz"), (b"data_", ".cif"), (b"#", ".cif"), (b">", ".fasta"), (b"\x83", ".bcif"))


def with_standard_input(files: Sequence[Path]) -> list[Path]:
    """Return the files, with a temporary file that has standard input in place of ``-``.

    Raises
    ------
    OptionError
        ``-`` is given twice, or standard input is empty or a terminal.
    """
    count = sum(file == Path("-") for file in files)
    if count == 0:
        return list(files)
    if count > 1:
        raise OptionError("'-' is given twice. Standard input can be read once.")
    content = b"" if sys.stdin.isatty() else sys.stdin.buffer.read()
    if not content:
        raise OptionError("'-': standard input is empty. Pipe a structure file, e.g. cat 1ubq.cif | protgraph ….")
    folder = Path(tempfile.mkdtemp(prefix="protgraph-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    suffix = next((suffix for start, suffix in _SUFFIXES if content.lstrip().startswith(start)), ".pdb")
    path = folder / f"stdin{suffix}"
    path.write_bytes(content)
    return [path if file == Path("-") else file for file in files]
