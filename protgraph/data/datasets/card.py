"""The card of a dataset, ``dataset.toml``: what it is, whose it is, what its labels mean, how it is split."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from protgraph.data.datasets.target import Target
from protgraph.errors import DatasetError

__all__ = ["DatasetCard", "SplitCount", "TaskCard", "load_card", "parse_card"]


@dataclass(frozen=True)
class SplitCount:
    """How much one split holds.

    Parameters
    ----------
    proteins : int
        Examples (one graph each).
    residues : int, optional
        Their residues; None before the structures are read.
    labeled : int, optional
        Residues with a known label, or proteins for a label per protein.
    per_class : tuple of int
        How many of each class, or how many positives of each label; empty for values.
    """

    proteins: int
    residues: int | None = None
    labeled: int | None = None
    per_class: tuple[int, ...] = ()

    def __add__(self, other: SplitCount) -> SplitCount:
        """The counts of both; what one does not know, the sum does not."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in ("proteins", "residues", "labeled"))
        sums = (None if None in pair else sum(pair) for pair in pairs)
        return SplitCount(*sums, tuple(a + b for a, b in zip(self.per_class, other.per_class, strict=True)))


@dataclass(frozen=True)
class TaskCard:
    """One task of a dataset: its target, the definition of its labels, and which proteins take part."""

    target: Target
    labels: str
    examples: str
    counts: Mapping[str, SplitCount]


@dataclass(frozen=True)
class DatasetCard:
    """A dataset's card.

    Parameters
    ----------
    name, version, license, citation, description : str
        What to call it and what it is.
    split_rule : str
        How proteins were divided and what no split shares with another.
    splits : mapping of str to SplitCount
        Its splits, in order.
    tasks : mapping of str to TaskCard
        Its tasks.
    """

    name: str
    version: str
    license: str
    citation: str
    description: str
    split_rule: str
    splits: Mapping[str, SplitCount]
    tasks: Mapping[str, TaskCard]


def load_card(path: str | Path) -> DatasetCard:
    """Read ``dataset.toml``; a missing key or a wrong type is a :class:`DatasetError` that says where."""
    try:
        with open(path, "rb") as file:
            table = tomllib.load(file)
    except OSError as e:
        raise DatasetError(f"no dataset card at {str(path)!r}: {e.strerror}") from e
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
        raise DatasetError(f"{path} is not TOML: {e}") from e
    return parse_card(table, where=str(path))


def parse_card(table: Mapping[str, Any], *, where: str = "card") -> DatasetCard:
    """A card from plain data.

    Examples
    --------
    >>> parse_card({"name": "mine"})
    Traceback (most recent call last):
        ...
    protgraph.errors.DatasetError: card: key 'version' is missing
    """
    text = ("name", "version", "license", "citation", "description")
    _known(table, {*text, "splits", "tasks"}, where)
    given = {key: _get(table, key, str, where) for key in text}
    splits = _get(table, "splits", dict, where)
    rule = _get(splits, "rule", str, f"{where} [splits]")
    counts = {name: _count(splits, name, f"{where} [splits]") for name in splits if name != "rule"}
    tasks = _get(table, "tasks", dict, where)
    if not counts or not tasks:
        raise DatasetError(f"{where}: a card has at least one split and one task")
    cards = {name: _task(tasks, name, set(counts), f"{where} [tasks.{name}]") for name in tasks}
    return DatasetCard(**given, split_rule=rule, splits=MappingProxyType(counts), tasks=MappingProxyType(cards))


def _task(tasks: Mapping[str, Any], name: str, splits: set[str], where: str) -> TaskCard:
    table = _get(tasks, name, dict, where)
    target_keys = {"level", "kind", "size", "names", "unit", "head", "separation"}
    _known(table, {*target_keys, "labels", "examples", "splits"}, where)
    names = _strings(table, "names", where)
    try:
        target = Target(
            name,
            level=_get(table, "level", str, where),
            kind=_get(table, "kind", str, where),
            size=_get(table, "size", int, where, default=len(names)),
            names=names,
            unit=_get(table, "unit", str, where, default="dimensionless"),
            head=_get(table, "head", str, where, default=None),
            separation=_get(table, "separation", int, where, default=0),
        )
    except DatasetError as e:
        raise e if str(e).startswith(where) else DatasetError(f"{where}: {e}") from e
    held = _get(table, "splits", dict, where)
    _known(held, splits, f"{where} splits")
    counts = {split: _count(held, split, f"{where} splits") for split in held}
    for split, count in counts.items():
        if count.per_class and len(count.per_class) != target.size:
            raise DatasetError(f"{where} splits.{split}: {len(count.per_class)} counts for {target.size} classes")
    labels, examples = (_get(table, key, str, where) for key in ("labels", "examples"))
    return TaskCard(target, labels, examples, MappingProxyType(counts))


def _count(table: Mapping[str, Any], key: str, where: str) -> SplitCount:
    given = _get(table, key, dict, where)
    where = f"{where} {key}"
    _known(given, {"proteins", "residues", "labeled", "per_class"}, where)
    per_class = _get(given, "per_class", list, where, default=[])
    if not all(type(n) is int for n in per_class):
        raise DatasetError(f"{where}: per_class must be a list of whole numbers, got {per_class!r}")
    return SplitCount(
        _get(given, "proteins", int, where),
        _get(given, "residues", int, where),
        _get(given, "labeled", int, where, default=None),
        tuple(per_class),
    )


_REQUIRED = object()


def _get(table: Mapping[str, Any], key: str, kind: type, where: str, *, default: Any = _REQUIRED) -> Any:
    if key not in table:
        if default is _REQUIRED:
            raise DatasetError(f"{where}: key {key!r} is missing")
        return default
    if type(table[key]) is not kind:
        word = {str: "a string", int: "a whole number", dict: "a table", list: "a list"}[kind]
        raise DatasetError(f"{where}: {key} must be {word}, got {table[key]!r}")
    return table[key]


def _strings(table: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    given = _get(table, key, list, where, default=[])
    if not all(isinstance(s, str) for s in given):
        raise DatasetError(f"{where}: {key} must be a list of strings, got {given!r}")
    return tuple(given)


def _known(table: Mapping[str, Any], allowed: set[str], where: str) -> None:
    unknown = sorted(set(table) - allowed)
    if unknown:
        raise DatasetError(f"{where}: unknown key {unknown[0]!r}; it takes {', '.join(sorted(allowed))}")
