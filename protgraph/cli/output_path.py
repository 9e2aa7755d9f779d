"""Checks of output paths before the work starts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from protgraph.errors import OptionError

__all__ = [
    "FAILURES_SUFFIX",
    "STORE_FILE",
    "WARNINGS_SUFFIX",
    "Overwrite",
    "check_different_outputs",
    "check_no_standard_output",
    "check_output",
    "check_output_folder",
    "check_output_store",
]

#: Option of every command that writes a file.
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing output files.")]

#: Appended to the name of the output: the tables of files that failed, and of warnings.
FAILURES_SUFFIX, WARNINGS_SUFFIX = ".failures.csv", ".warnings.csv"

#: As :data:`protgraph.data.store.store_description.META`, which would load torch.
STORE_FILE = "store.json"

_LONGEST_NAME = 240  # bytes; file systems allow 255, of which a temporary file needs 15


def check_output(
    path: Path,
    *,
    option: str = "--out",
    inputs: Iterable[str | Path | None] = (),
    overwrite: bool = False,
    suffixes: Sequence[str] = (),
) -> Path:
    """Return the path of an output file that can be written. Nothing is created.

    ``PATH.failures.csv`` and ``PATH.warnings.csv``, which commands write beside their output, are not inputs either.

    ``option``: option of the path, for errors. ``inputs``: files, graph stores and other sources that the command
    reads. None and names that are not paths are skipped. ``overwrite``: allow an existing file. ``suffixes``: allowed
    ends of the name; empty allows all. Raises :class:`OptionError` if the path is ``-``, has another suffix, is a
    folder, is one of the inputs (also by a link) or in a graph store, is not a regular file, exists without
    ``overwrite``, or its folder is not writable or cannot be created.
    """
    label = f"{option} {str(path)!r}"
    check_no_standard_output(path, label)
    if os.path.isdir(path):
        raise OptionError(f"{label} is a folder. Give a file name.")
    _check_name(path, suffixes, label)
    sources = [os.fspath(name) for name in inputs if name]
    _check_differs(path, sources, label)
    for suffix in (FAILURES_SUFFIX, WARNINGS_SUFFIX):
        table = path.with_name(path.name + suffix)
        _check_differs(table, sources, f"{label}: the table {str(table)!r} beside it")
    _check_no_store(path, label)
    if path.exists() and not path.is_file():
        raise OptionError(f"{label} is not a regular file. Give another name.")
    if path.exists() and not overwrite:
        raise OptionError(f"{label} exists. Add --overwrite to replace it, or give another name.")
    _check_writable(path.parent, label)
    return path


def check_different_outputs(outputs: Mapping[str, Path | None]) -> None:
    """Raise :class:`OptionError` if two options name the same file, of which the last output alone would stay.

    ``outputs``: option → path; None is no output.
    """
    option_of: dict[str, str] = {}
    for option, path in outputs.items():
        if path is None:
            continue
        name = os.path.realpath(path)
        if name in option_of:
            raise OptionError(f"{option} {str(path)!r} is also {option_of[name]}. Give different names.")
        option_of[name] = option


def check_no_standard_output(path: Path, label: str) -> None:
    """Raise for ``-``, which names no file; a command that prints its table handles it before."""
    if path == Path("-"):
        raise OptionError(f"{label}: this output cannot be printed. Give a name.")


def _check_name(path: Path, suffixes: Sequence[str], label: str) -> None:
    has_suffix = any(path.name.endswith(suffix) and path.name != suffix for suffix in suffixes)
    if suffixes and not has_suffix:
        raise OptionError(f"{label} has the suffix {path.suffix!r}. Allowed: {', '.join(suffixes)}.")
    if len(os.fsencode(path.name)) > _LONGEST_NAME:
        raise OptionError(f"{label}: the name is too long. Allowed: {_LONGEST_NAME} bytes.")


def check_output_folder(
    path: Path,
    *,
    option: str = "--out",
    inputs: Iterable[str | Path | None] = (),
    overwrite: bool = False,
    apart: bool = False,
) -> Path:
    """Return the path of a folder for output files. Nothing is created.

    ``path``, ``option``, ``inputs``: see :func:`check_output`. ``overwrite``: allow a folder with files; those with the
    names of the new files are replaced. ``apart``: refuse inputs in the folder. Raises :class:`OptionError` if the path
    is ``-``, a file, an input or in a graph store, has files without ``overwrite``, or is not writable.
    """
    label = f"{option} {str(path)!r}"
    check_no_standard_output(path, label)
    if path.exists() and not path.is_dir():
        raise OptionError(f"{label} is a file. Give a folder.")
    sources = [os.fspath(name) for name in inputs if name]
    _check_differs(path, sources, label)
    if apart:
        _check_apart(path, sources, label)
    _check_no_store(path, label)
    _check_writable(path, label)
    if not overwrite and path.exists() and any(path.iterdir()):
        raise OptionError(f"{label} is a folder with files. Add --overwrite to replace them, or give another name.")
    return path


def check_output_store(path: Path, *, inputs: Iterable[str | Path | None] = (), overwrite: bool = False) -> Path:
    """Return the path of a graph store to write. Nothing is created.

    ``path``, ``inputs``: see :func:`check_output`. ``overwrite``: allow an existing graph store. Raises
    :class:`OptionError` if the path is ``-``, is or contains an input, is in another store, exists and is not a store,
    exists without ``overwrite``, or its folder is not writable.
    """
    from protgraph.data.store.store_description import is_store_folder

    label, sources = f"--out {str(path)!r}", [os.fspath(name) for name in inputs if name]
    check_no_standard_output(path, label)
    _check_differs(path, sources, label)
    _check_apart(path, sources, label)
    _check_no_store(path, label)
    if os.path.lexists(path) and not is_store_folder(path):
        raise OptionError(f"{label} exists and is not a graph store. Give another name.")
    if is_store_folder(path) and not overwrite:
        raise OptionError(f"{label} exists. Add --overwrite to replace it, or give another name.")
    _check_writable(path.parent, label)
    return path


def _check_differs(path: Path, inputs: Iterable[str], label: str) -> None:
    """Raise if ``path`` is one of the inputs: files, "@list.txt", or FASTA records "x.fasta#name"."""
    status, absolute = path.stat() if path.exists() else None, os.path.abspath(path)
    for name in inputs:
        for source in {name, name.removeprefix("@"), name.rpartition("#")[0] or name}:
            if status is None:
                is_same = os.path.abspath(source) == absolute
            else:
                is_same = os.path.exists(source) and os.path.samestat(os.stat(source), status)
            if is_same:
                raise OptionError(f"{label} is also an input. Give another name.")


def _check_apart(folder: Path, inputs: Iterable[str], label: str) -> None:
    real_folder = os.path.realpath(folder)
    for name in inputs:
        if os.path.realpath(name).startswith(os.path.join(real_folder, "")):
            raise OptionError(f"{label} contains the input {name!r}. Give another name.")


def _check_no_store(path: Path, label: str) -> None:
    parents = Path(os.path.realpath(path)).parents
    store = next((folder for folder in parents if (folder / STORE_FILE).is_file()), None)
    if store is not None:
        raise OptionError(f"{label} is in the graph store {str(store)!r}. Give a path outside of it.")


def _check_writable(folder: Path, label: str) -> None:
    """Raise if files cannot be created in a folder, or the folder cannot be created in the first one that exists."""
    existing = next(path for path in (folder, *folder.absolute().parents) if os.path.lexists(path))
    if not existing.is_dir():
        raise OptionError(f"{label}: the folder cannot be created: {str(existing)!r} is a file. Give another name.")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise OptionError(f"{label}: the folder {str(existing)!r} is not writable. Give a path in another folder.")
