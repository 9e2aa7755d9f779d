"""Validation of plain data against declared types with pydantic; one line per error, with the path of the key."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from protgraph.errors import OptionError, ProtgraphError, suggest

__all__ = ["Seed", "check_choice", "check_value", "describe_errors", "read_toml", "unknown_name"]

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


def read_toml(path: Path, kind: str) -> dict[str, Any]:
    """Read a TOML file; ``kind`` is what it is, for the ``OptionError`` of a file that cannot be read."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise OptionError(f"{kind} not readable: {str(path)!r} ({e.strerror}).") from e
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise OptionError(f"{kind} is not valid TOML: {str(path)!r} ({e}).") from e


def describe_errors(error: ValidationError, *, keys: _Keys = (), paths: Mapping[str, str] | None = None) -> str:
    """Return one line per wrong key: its path, its value, and the allowed values."""
    grouped: dict[tuple[int | str, ...], list[Any]] = {}
    items = error.errors(include_url=False)
    missing = [item["loc"] for item in items if item["type"] == "missing"]
    if len(missing) > 1 and len(missing) == len(items):
        absent = [_path(_renamed(loc, paths or {})) for loc in missing]
        return f"{', '.join(absent)} are missing. Keys: {', '.join(_allowed(keys, missing[0]))}."
    for item in items:
        if not any(loc[: len(item["loc"])] == item["loc"] != loc for loc in grouped):  # a wrong element is reported
            grouped.setdefault(item["loc"], []).append(item)
    return "\n".join(_line(loc, items, keys, paths or {}) for loc, items in grouped.items())


def _line(loc: Sequence[int | str], items: Sequence[Any], keys: _Keys, paths: Mapping[str, str]) -> str:
    parts = _renamed(loc, paths)
    path, parent = _path(parts), _path(parts[:-1])
    if items[0]["type"] in _UNKNOWN_KEY:
        return (f"{parent}: " if parent else "") + unknown_name(str(parts[-1]), _allowed(keys, loc))
    if items[0]["type"] == "missing":
        return f"{path} is missing. Keys: {', '.join(_allowed(keys, loc))}."
    return _wrong_value(path, items)


def _renamed(loc: Sequence[int | str], paths: Mapping[str, str]) -> list[int | str]:
    """Return a location with the first key as in the file."""
    return [*(paths.get(str(part), part) for part in loc[:1]), *loc[1:]]


def _allowed(keys: _Keys, loc: Sequence[int | str]) -> Collection[str]:
    return keys(loc) if callable(keys) else keys


def _path(parts: Sequence[int | str]) -> str:
    """Return ``fit.tasks.t`` or ``seeds[1]``."""
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f"{'.' if text else ''}{part}"
    return text


def _wrong_value(path: str, items: Sequence[Any]) -> str:
    texts = [e["msg"].removeprefix("Value error, ").removeprefix("Input should be ") for e in items]
    allowed = dict.fromkeys(_ALLOWED.get(e["type"], text) for e, text in zip(items, texts, strict=True))
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
    """Return ``value`` if it is allowed.

    Raises
    ------
    OptionError
        If it is not; the message lists the allowed values.
    """
    if value not in allowed:
        raise OptionError(
            f"{option}={value!r} is not one of {', '.join(map(repr, allowed))}.{suggest(str(value), allowed)}"
        )
    return value
