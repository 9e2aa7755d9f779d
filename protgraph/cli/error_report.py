"""Errors of a command as one message on standard error, with the place of a fault in our code or in a plugin's."""

from __future__ import annotations

import platform
import sys
import sysconfig
import traceback
from collections.abc import Iterator, Mapping
from importlib.metadata import packages_distributions, version
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from protgraph import deferred_imports
from protgraph.cli.console import text_console
from protgraph.registry import registries

__all__ = ["describe_fault", "print_error", "print_fault", "print_warning"]

_LIBRARIES = {"site-packages", "dist-packages"}
_PACKAGE = Path(__file__).parents[1]


def print_error(message: object) -> None:
    """Print ``error: `` and the message on standard error, without wrapping."""
    _print("error: ", "bold red", message)


def print_warning(message: object) -> None:
    """Print ``warning: `` and the message on standard error, without wrapping."""
    _print("warning: ", "yellow", message)


def _print(label: str, style: str, message: object) -> None:
    from rich.text import Text

    text = str(message) or type(message).__name__
    text_console(stderr=True).print(Text.assemble((label, style), text), soft_wrap=True)


def print_fault(error: BaseException) -> None:
    """Print an exception that no part of the program expected: class, message, place, and how to see the traceback."""
    print_error(describe_fault(error))


def describe_fault(error: BaseException) -> str:
    """Return the class, message and place of an unexpected exception, and who can repair it.

    The place is the innermost frame of a plugin or of protgraph, not that of a library that it called. A library that
    cannot be imported is named instead, e.g. torchvision of another torch.

    Examples
    --------
    >>> try:
    ...     [][0]
    ... except IndexError as e:
    ...     print(describe_fault(e).partition(" (")[0])
    IndexError: list index out of range
    """
    text = " ".join(str(error).split())
    named = f"{type(error).__name__}: {text}" if text else type(error).__name__
    fault = _locate(error)
    if fault.library:
        return (
            f"{named}, while the library {_with_version(fault.library)} is imported. It is damaged or does not fit the "
            f"installed packages ({_with_version('torch')}, Python {platform.python_version()}): install another "
            "version of it, or remove it if nothing needs it. Run with --debug for the traceback."
        )
    where = f" ({_short(fault.frame.filename)}:{fault.frame.lineno})" if fault.frame else ""
    return f"{named}{where}. This is an error in {fault.owner}. Run with --debug for the traceback."


class _Fault(NamedTuple):
    """Place where an exception was raised."""

    frame: traceback.FrameSummary | None
    """Innermost frame outside of the libraries."""
    owner: str
    """Distribution or file of the frame."""
    library: str
    """Library whose import raised the exception; "" if other code did."""


def _locate(error: BaseException) -> _Fault:
    folders = {_PACKAGE: "protgraph", **dict(_plugin_folders())}
    library = ""
    frames = traceback.extract_tb(error.__traceback__)
    for frame in reversed(frames):
        path = Path(frame.filename)
        if not path.is_file() or frame.filename == deferred_imports.__file__:
            continue
        owner = _owner(path, folders)
        if owner:
            return _Fault(frame, owner, library)
        if frame.name == "<module>" and not library:
            library = _library(path)
    return _Fault(frames[-1] if frames else None, "protgraph", library)


def _owner(path: Path, folders: Mapping[Path, str]) -> str:
    """Return the distribution of a file, the name of a script, or "" for a library."""
    for folder, name in folders.items():
        if folder in (path, *path.parents):
            return name
    is_standard = Path(sysconfig.get_path("stdlib")) in path.parents
    return "" if is_standard or _library(path) else path.name


def _library(path: Path) -> str:
    """Return the name of an installed module from its path, "" for another file."""
    for folder, name in pairwise(path.parts):
        if folder in _LIBRARIES:
            return name.removesuffix(".py")
    return ""


def _with_version(module: str) -> str:
    """Return the distribution that provides a module, with its version."""
    names = packages_distributions().get(module)
    return f"{names[0]} {version(names[0])}" if names else module


def _plugin_folders() -> Iterator[tuple[Path, str]]:
    """Yield the folder or file of each imported module that provides components, and its distribution."""
    for registry in registries.values():
        for name in registry:
            entry = registry.entry(name)
            module = entry.object.partition(":")[0]
            base = module.rpartition(".")[0] or module
            file = getattr(sys.modules.get(base), "__file__", None)
            if file:
                path = Path(file)
                yield (path.parent if path.name == "__init__.py" else path), entry.source


def _short(filename: str) -> str:
    """Return ``protgraph/train/training.py`` for our files, the path as it is for others."""
    path = Path(filename)
    return str(path.relative_to(_PACKAGE.parent)) if _PACKAGE in path.parents else filename
