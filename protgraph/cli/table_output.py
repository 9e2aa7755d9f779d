"""Table or sequences of a command: a file, standard output, or none; messages and tables beside it."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from protgraph.cli.output_path import check_output

if TYPE_CHECKING:
    from protgraph.inference import ResultTable

__all__ = ["STANDARD_OUTPUT", "TableOutput"]

#: Value of ``--out`` for CSV or FASTA on standard output.
STANDARD_OUTPUT = Path("-")


class TableOutput:
    """Table, or sequences, that a command writes.

    ``out``: file, ``-`` for standard output, or None for no table. ``inputs``, ``overwrite``, ``suffixes``: see
    :func:`protgraph.cli.check_output`. Raises :class:`OptionError` if the file cannot be written.
    """

    def __init__(
        self,
        out: Path | None,
        *,
        inputs: Iterable[str | Path | None],
        overwrite: bool,
        suffixes: Sequence[str],
    ) -> None:
        self.is_standard_output = out == STANDARD_OUTPUT
        self.path: Path | None = None
        if out is not None and not self.is_standard_output:
            self.path = check_output(out, inputs=inputs, overwrite=overwrite, suffixes=suffixes)

    def print(self, text: str) -> None:
        """Print a message: on standard error if the table is on standard output."""
        typer.echo(text, err=self.is_standard_output)

    def write(self, table: ResultTable, text: str) -> None:
        """Write the table, and print the text with the name of its file."""
        if self.is_standard_output:
            table.write_csv(sys.stdout, line_end="\n")
        elif self.path is not None:
            table.write(self.path)
            self.print(f"{text} → {self.path}")

    @contextmanager
    def file(self, suffix: str) -> Iterator[Path]:
        """Yield the file to write; for standard output a temporary one, which is copied there when the block ends.

        ``suffix``: end of the name of the temporary file, which selects the format.
        """
        if self.path is not None:
            yield self.path
            return
        with tempfile.TemporaryDirectory(prefix="protgraph-") as folder:
            path = Path(folder, f"out{suffix}")
            yield path
            if self.is_standard_output and path.exists():
                with path.open(encoding="utf-8") as content:  # lines end as those of standard output
                    shutil.copyfileobj(content, sys.stdout)

    def beside(self, suffix: str) -> Path | None:
        """Return the path of a table beside the file; None without a file."""
        return None if self.path is None else self.path.with_name(f"{self.path.name}{suffix}")
