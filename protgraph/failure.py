"""Record of a file or protein that could not be used; all commands write the same."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from protgraph.errors import ProtgraphError

__all__ = ["Failure"]


@dataclass(frozen=True)
class Failure:
    """One protein or file that could not be used.

    ``source``: the file as given; for a FASTA record, followed by "#" and its name. ``protein``: name or chains of the
    protein; "" if the whole file failed. ``error_type``: class of the error, e.g. "StructureFileError". ``message``:
    message of the error in one line. ``sha256``: hexadecimal SHA-256 of the file; "" if it was not read. ``seconds``:
    time spent on it.

    Examples
    --------
    >>> print(Failure.of("1abc.pdb", "A", ValueError("no atoms")))
    1abc.pdb A: ValueError: no atoms
    >>> print(Failure("1abc.pdb", "1abc.pdb", "SelectionError", "1abc.pdb: no chain 'Q'"))
    1abc.pdb: no chain 'Q'
    >>> print(Failure("a/1abc.pdb", "", "SelectionError", "1abc: no chain 'Q'"))
    a/1abc.pdb: no chain 'Q'
    """

    source: str
    protein: str
    error_type: str
    message: str
    sha256: str = field(default="", compare=False)
    seconds: float = field(default=0.0, compare=False)

    @classmethod
    def of(cls, source: object, protein: str, error: BaseException, **measured: Any) -> Failure:
        """Return the record of an error."""
        return cls(str(source), protein, type(error).__name__, _one_line(error), **measured)

    @property
    def reason(self) -> str:
        """Message; with the class of the error in front unless it is a :class:`~protgraph.errors.ProtgraphError`."""
        return self.message if self.error_type in _own_types() else f"{self.error_type}: {self.message}"

    def __str__(self) -> str:
        where = self.source if self.protein == self.source else f"{self.source} {self.protein}".rstrip()
        reason = self.reason
        name = PurePath(self.source).name.partition(".")[0]
        for repeated in (f"{self.source}: ", f"{self.source}: ", f"{name}: "):  # of the file, and of the protein in it
            reason = reason.removeprefix(repeated)
        return reason if reason.startswith(where) else f"{where}: {reason}"


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _own_types() -> set[str]:
    types, names = [ProtgraphError], set()
    while types:
        kind = types.pop()
        names.add(kind.__name__)
        types += kind.__subclasses__()
    return names
