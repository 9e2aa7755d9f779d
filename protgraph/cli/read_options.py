"""Options of reading structure files and label tables, the same for every command, and ``-`` for standard input."""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from protgraph.errors import OptionError

if TYPE_CHECKING:
    from protgraph.structure import LossReport

__all__ = [
    "Kind",
    "LabelColumns",
    "LabelFile",
    "LeaveOutAbsent",
    "UnknownTexts",
    "chain_names",
    "chains_option",
    "print_reader_notes",
    "reads_structures",
    "with_standard_input",
]


def chains_option(text: str) -> Any:
    """Return the type of the option ``--chain``, also ``--chains``, with a help text; see :func:`chain_names`."""
    return Annotated[list[str] | None, typer.Option("--chain", "--chains", help=text)]


def chain_names(values: Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of ``--chain A --chain B`` or ``--chains A,B``; none if the option is not used.

    Raises :class:`OptionError` if a value has commas and no name.

    Examples
    --------
    >>> chain_names(["A,B", "A-2"]), chain_names([""]), chain_names(None)
    (('A', 'B', 'A-2'), ('',), ())
    """
    names: list[str] = []
    for value in values or ():
        parts = [part.strip() for part in value.split(",")]
        if len(parts) > 1 and not any(parts):
            raise OptionError(f"--chain {value!r} names no chain. Allowed: 'A', or several, 'A,B'.")
        names += [part for part in parts if part] if len(parts) > 1 else parts  # one empty text: the blank chain id
    return tuple(dict.fromkeys(names))


Chains = chains_option("Chains to keep, 'A,B', or repeat the option. Default: all.")
Altloc = Annotated[
    str, typer.Option(help="Alternate location of each residue: occupancy (the highest), first, or an id such as B.")
]
Assembly = Annotated[
    str | None, typer.Option(help="Biological assembly to build, e.g. 1; copies of chain A are named A, A-2, …")
]
Alignment = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|FOLDER",
        help="Alignments of the chains, a3m, aligned FASTA, Stockholm or Clustal, found by their sequences.",
    ),
]
Search = Annotated[
    str | None,
    typer.Option(metavar="FASTA", help="Align the chains with the sequences of this file, by MMseqs2."),
]
ModelNumber = Annotated[int, typer.Option(help="Model to read, counted from 1, if a file has several.")]

#: Option → keyword of :class:`protgraph.structure.ReadOptions`, type and help, default.
_OPTIONS: dict[str, tuple[str, object, object]] = {
    "chains": ("chains", Chains, None),
    "altloc": ("altloc", Altloc, "occupancy"),
    "assembly": ("assembly", Assembly, None),
    "model_number": ("model_number", ModelNumber, 1),
}


def reads_structures(
    *, chains: bool = True, alignment: bool = False, deferred: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options ``--chain`` (or ``--chains``), ``--altloc``, ``--assembly`` and ``--model-number`` to a command.

    ``chains``: add ``--chain``; False for commands that read all chains and use some of them (:func:`chains_option`).
    ``alignment``: add ``--alignment`` and ``--search``, for commands that run featurizers of alignments. ``deferred``:
    defer imports (:mod:`protgraph.deferred_imports`), for commands that only apply featurizers and models. Returns a
    decorator. The command gets :class:`protgraph.structure.ReadOptions` as its argument ``read``. Raises
    :class:`OptionError` when the command is called: the alternate location or the model number is not valid.
    """
    options = {name: option for name, option in _OPTIONS.items() if chains or name != "chains"}
    if alignment:
        options |= {"alignment": ("alignment", Alignment, None), "search": ("search", Search, None)}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        of_command = [p for p in signature(command).parameters.values() if p.name != "read"]
        hints = get_type_hints(command, localns={"ReadOptions": object}, include_extras=True)
        of_command = [p.replace(annotation=hints[p.name]) for p in of_command]
        added = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, (_, annotation, default) in options.items()
        ]

        @wraps(command)
        def run(**arguments: Any) -> None:
            if deferred:
                from protgraph.deferred_imports import defer_imports

                defer_imports(only_applies_models=True)
            from protgraph.structure import ReadOptions
            from protgraph.structure.io.read_options import SEARCH

            values = {keyword: arguments.pop(name) for name, (keyword, _, _) in options.items()}
            if "chains" in values:
                values["chains"] = chain_names(values["chains"]) or None
            database = values.pop("search", None)
            if database is not None and values["alignment"] is not None:
                raise OptionError("--alignment and --search exclude each other. Use one of them.")
            _check_exists("--search", database)
            _check_exists("--alignment", values.get("alignment"))
            if database is not None:
                values["alignment"] = f"{SEARCH}{database}"
            command(**arguments, read=ReadOptions(**values))

        parameters = [*of_command, *added]
        run.__signature__ = signature(command).replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters} | {"return": None}
        return run

    return decorate


def _check_exists(option: str, path: str | None) -> None:
    """Raise if a file does not exist, also where no featurizer would read it."""
    if path is not None and not Path(path).exists():
        raise OptionError(f"{option}: {path!r} does not exist. Give the path of a file or folder.")


def print_reader_notes(reports: Mapping[str, LossReport]) -> None:
    """Print which files have several models, and a warning if the reader changed residues, from their reports."""
    from protgraph.featurize import model_notes, reader_notes

    for note in model_notes(reports):
        typer.echo(f"note: {note}", err=True)

    for note in reader_notes(reports):
        typer.echo(f"warning: {note}", err=True)


#: First bytes of a file → suffix.
_SUFFIXES = ((b"\x1f\x8b", ".gz"), (b"data_", ".cif"), (b"#", ".cif"), (b">", ".fasta"), (b"\x83", ".bcif"))


def with_standard_input(files: Sequence[Path]) -> list[Path]:
    """Return the files, with a temporary file that has standard input in place of ``-``.

    Raises :class:`OptionError` if ``-`` is given twice, or standard input is empty or a terminal.
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


# --- label tables ----------------------------------------------------------------------------------------------------


LabelFile = Annotated[
    Path | None, typer.Option(help="Table of labels or splits: CSV, TSV, .xlsx (FILE.xlsx#SHEET) or Parquet.")
]
LabelColumns = Annotated[
    list[str] | None,
    typer.Option(help="Label column of the table; repeat for several numeric ones that form one task."),
]
Kind = Annotated[
    str | None,
    typer.Option(help="Kind of labels: classification, multilabel (binary) or regression; inferred if omitted."),
]
UnknownTexts = Annotated[
    list[str] | None, typer.Option(help="Text that means an unknown label, besides blank cells; repeat for more.")
]
LeaveOutAbsent = Annotated[
    bool,
    typer.Option(
        "--leave-out-absent",
        help="Leave out labels of residues that are absent from a structure, e.g. unresolved. Labels of the whole "
        "sequence need no option.",
    ),
]
