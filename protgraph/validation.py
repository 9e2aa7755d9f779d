"""Validation of plain data against declared types with pydantic; one line per error, with the path of the key."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from protgraph.errors import OptionError, ProtgraphError, suggest

__all__ = [
    "Seed",
    "check_choice",
    "check_format_version",
    "check_value",
    "describe_errors",
    "read_toml",
    "unknown_name",
]

#: Seed of a random generator, in the range that NumPy and torch share.
Seed = Annotated[int, Field(ge=0, lt=2**63)]

#: Error type of pydantic → allowed value, in the words of TOML.
_ALLOWED = {
    "dict_type": "a table",
    "int_type": "an integer",
    "mapping_type": "a table",
    "path_type": "a path",
    "string_type": "a string",
    "too_short": "at least one element",
    "tuple_type": "a list",
}
_UNKNOWN_KEY = ("extra_forbidden", "unexpected_keyword_argument")
_Keys = Collection[str] | Callable[[Sequence[int | str]], Collection[str]]


#: Version of each format that people write by hand: model, recipe, bench spec, dataset card.
TOML_VERSION = 1


def read_toml(path: Path, kind: str) -> dict[str, Any]:
    """Read a TOML file; ``kind`` is what it is, for the ``OptionError`` of a file that cannot be read.

    The keys ``format_version`` and ``protgraph`` of a later format are checked and left out.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise OptionError(f"{kind} not readable: {str(path)!r} ({e.strerror}).") from e
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as e:
        raise OptionError(f"{kind} is not valid TOML: {str(path)!r} ({e}).") from e
    version, writer = data.pop("format_version", TOML_VERSION), data.pop("protgraph", None)
    check_format_version(f"{kind} {str(path)!r}", version, TOML_VERSION, writer=writer)
    return data


def check_format_version(
    where: str,
    version: object,
    newest: int,
    *,
    oldest: int = 1,
    writer: object = None,
    error: type[ProtgraphError] = OptionError,
    older: str = "Write it again.",
) -> None:
    """Raise ``error`` for a file whose format version is not among those from ``oldest`` to ``newest``.

    The error of a newer file names the version of protgraph to install: ``writer``, which wrote the file, or that the
    file asks for. ``older``: what to do with an older file.

    Examples
    --------
    >>> check_format_version("store 'graphs'", 4, 3, writer="0.5.0")
    Traceback (most recent call last):
    protgraph.errors.OptionError: store 'graphs' has format version 4; protgraph ... reads up to version 3. Install
    protgraph 0.5.0 or later: pip install 'protgraph-pyg>=0.5.0'.
    """
    from protgraph import __version__  # at the top, mypy cannot resolve the cycle

    readable = f"versions {oldest} to {newest}" if oldest < newest else f"version {newest}"
    if not isinstance(version, int) or isinstance(version, bool):
        raise error(f"{where} has format version {version!r}. Allowed: {readable}.")
    if oldest <= version <= newest:
        return
    if version < oldest:
        raise error(f"{where} has format version {version}; protgraph {__version__} reads {readable}. {older}")
    install = "the newest protgraph: pip install --upgrade protgraph-pyg"
    if isinstance(writer, str) and writer:
        install = f"protgraph {writer} or later: pip install 'protgraph-pyg>={writer}'"
    raise error(
        f"{where} has format version {version}; protgraph {__version__} reads up to version {newest}. "
        f"Install {install}."
    )


def describe_errors(error: ValidationError, *, keys: _Keys = (), paths: Mapping[str, str] | None = None) -> str:
    """Return one line per wrong key: its path, its value, and the allowed values."""
    paths = paths or {}
    items = error.errors(include_url=False)
    missing = [item["loc"] for item in items if item["type"] == "missing"]
    if len(missing) > 1 and len(missing) == len(items):
        absent = [_path(_renamed(loc, paths)) for loc in missing]
        return f"{', '.join(absent)} are missing. Keys: {', '.join(_allowed(keys, missing[0]))}."

    # one line per location; of a table with a wrong element, only the element is reported
    grouped: dict[tuple[int | str, ...], list[Any]] = {}
    for item in items:
        loc = item["loc"]
        has_wrong_element = any(other != loc and other[: len(loc)] == loc for other in grouped)
        if not has_wrong_element:
            grouped.setdefault(loc, []).append(item)
    lines = [_line(loc, items_of_loc, keys, paths) for loc, items_of_loc in grouped.items()]
    return "\n".join(lines)


def _line(loc: Sequence[int | str], items: Sequence[Any], keys: _Keys, paths: Mapping[str, str]) -> str:
    names = _renamed(loc, paths)
    path = _path(names)
    parent = _path(names[:-1])
    if items[0]["type"] in _UNKNOWN_KEY:
        line = unknown_name(str(names[-1]), _allowed(keys, loc))
        return f"{parent}: {line}" if parent else line
    if items[0]["type"] == "missing":
        return f"{path} is missing. Keys: {', '.join(_allowed(keys, loc))}."
    return _wrong_value(path, items)


def _renamed(loc: Sequence[int | str], paths: Mapping[str, str]) -> list[int | str]:
    """Return a location with the first key as in the file."""
    if not loc:
        return []
    return [paths.get(str(loc[0]), loc[0]), *loc[1:]]


def _allowed(keys: _Keys, loc: Sequence[int | str]) -> Collection[str]:
    return keys(loc) if callable(keys) else keys


def _path(parts: Sequence[int | str]) -> str:
    """Return ``fit.tasks.t`` or ``seeds[1]``."""
    text = ""
    for key in parts:
        if isinstance(key, int):
            text += f"[{key}]"
        elif text:
            text += f".{key}"
        else:
            text = key
    return text


def _wrong_value(path: str, items: Sequence[Any]) -> str:
    allowed: dict[str, None] = {}  # each once
    for item in items:
        text = item["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
        allowed[_ALLOWED.get(item["type"], text)] = None
    return f"{path} = {items[0]['input']!r}. Allowed: {' or '.join(allowed)}."


def unknown_name(name: str, allowed: Collection[str]) -> str:
    """Return the error text for an unknown name, with the nearest allowed ones."""
    return f"unknown {name!r}.{suggest(name, allowed)} Allowed: {', '.join(sorted(allowed))}."


def check_value(value: object, annotation: Any, *, path: str, error: type[ProtgraphError] = OptionError) -> None:
    """Check the type of a value, without conversion."""
    try:
        _adapter(annotation).validate_python(value, strict=True)
    except ValidationError as e:
        items = e.errors(include_url=False)
        loc = items[0]["loc"] if len({item["loc"] for item in items}) == 1 else ()  # several: members of a union
        raise error(_wrong_value(_path([path, *loc]), items)) from e


def _adapter(annotation: Any) -> TypeAdapter[Any]:
    """Return the validator of a type; building it takes about a hundred times as long as using it."""
    try:
        hash(annotation)
    except TypeError:  # e.g. Annotated[int, ["Å"]]
        return TypeAdapter(annotation)
    return _kept_adapter(annotation, repr(annotation))


@lru_cache(maxsize=1024)
def _kept_adapter(annotation: Any, text: str) -> TypeAdapter[Any]:
    """Return the validator of a type; ``text`` keeps ``int | str`` and ``str | int`` apart, whose messages differ."""
    return TypeAdapter(annotation)


def check_choice(option: str, value: str, allowed: Sequence[str]) -> str:
    """Return ``value`` if it is allowed."""
    if value not in allowed:
        raise OptionError(
            f"{option}={value!r} is not one of {', '.join(map(repr, allowed))}.{suggest(str(value), allowed)}"
        )
    return value
