"""Dataset card, ``dataset.toml``: name, license, meaning of the labels, splits and expected counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from protgraph.data.datasets.target import Target
from protgraph.errors import DatasetError, OptionError
from protgraph.validation import describe_errors, read_toml

__all__ = [
    "DatasetCard",
    "KnownLeak",
    "Provenance",
    "ReferenceScore",
    "SourceRepository",
    "SplitCount",
    "TaskCard",
    "count_example",
    "load_card",
    "parse_card",
    "sum_counts",
]


class _Schema(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ReferenceScore(_Schema):
    """Score of a floor or of a published method."""

    method: str
    metric: str
    value: float
    split: str = "test"  # split of the card that was scored
    trained_on: str = ""  # training data
    source: str = ""  # reference, and how the value was obtained
    confirmed: bool = False  # True: read in the source or computed; False: from memory


class KnownLeak(_Schema):
    """Relatives in two splits of the published data."""

    split: str  # split and other: splits of the card
    other: str
    # related and close: proteins of ``split`` with a relative in ``other``: by the rule, and at 95 % identity
    related: int
    close: int
    source: str  # program and rule that found them


class SourceRepository(_Schema):
    """Repository that files of a dataset are downloaded from.

    Parameters
    ----------
    repository : str
        ``owner/name`` on GitHub.
    commit : str
        40 hexadecimal digits.
    files : str
        Table beside the card with the columns ``path`` (in the repository) and ``sha256``; empty if ``prepare`` does
        not read the repository's own files.
    mirrors : tuple of str
        Addresses to try first or instead, with ``{repository}``, ``{commit}`` and ``{path}``.
    """

    repository: str
    commit: str
    files: str = ""
    mirrors: tuple[str, ...] = Field(default=(), strict=False)  # TOML has lists


@dataclass(frozen=True)
class Provenance:
    """Source of the data of a prepared dataset, and what may be passed on."""

    redistribution: str = ""  # what may be redistributed
    weights_note: str = ""  # terms that models trained on the dataset have to state; empty if there are none
    train_on: str = ""  # dataset to train on, where this one has no training split
    sources: tuple[SourceRepository, ...] = ()
    # name and SHA-256 of the files of a local source folder, where they are known
    checksums: tuple[tuple[str, str], ...] = ()
    known_leaks: tuple[KnownLeak, ...] = ()  # relatives in different splits


@dataclass(frozen=True)
class SplitCount:
    """Numbers of proteins, residues and labels of a split.

    Parameters
    ----------
    proteins : int
        Examples (one graph each).
    residues : int, optional
        Residues; None if the structures have not been read.
    labeled : int, optional
        Residues with a known label; for labels per protein, proteins with one.
    per_class : tuple of int
        Examples of each class, or positives of each label; empty for regression.
    """

    proteins: int
    residues: int | None = None
    labeled: int | None = None
    per_class: tuple[int, ...] = ()

    def __add__(self, other: SplitCount) -> SplitCount:
        """Add counts; a count that is None in either is None in the sum."""
        return SplitCount(
            self.proteins + other.proteins,
            _add(self.residues, other.residues),
            _add(self.labeled, other.labeled),
            tuple(a + b for a, b in zip(self.per_class, other.per_class, strict=True)),
        )


def _add(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


def count_example(y: np.ndarray, target: Target, residues: int | None) -> SplitCount:
    """Count the known labels of a protein, ``y (M, …)`` in the form of its target, in total and per class."""
    if target.kind == "classification":
        known = y[y >= 0]
        per_class = np.bincount(known, minlength=target.size)
        return SplitCount(1, residues, len(known), tuple(per_class.tolist()))
    is_known = ~np.isnan(y)
    labeled = int(is_known.any(axis=tuple(range(1, y.ndim))).sum())
    positives: tuple[int, ...] = ()
    if target.kind == "multilabel":
        positives = tuple(np.nansum(y, axis=0).astype(int).tolist())
    return SplitCount(1, residues, labeled, positives)


def sum_counts(counts: Iterable[tuple[str, SplitCount]]) -> dict[str, SplitCount]:
    """Sum the counts of examples, each with its split; splits are in order of appearance."""
    total: dict[str, SplitCount] = {}
    for split, count in counts:
        total[split] = total[split] + count if split in total else count
    return total


@dataclass(frozen=True)
class TaskCard:
    """Task of a dataset.

    Parameters
    ----------
    labels : str
        Definition and source of the labels.
    examples : str
        Which proteins take part.
    counts : mapping of str to SplitCount
        Expected counts of each split.
    floors, published : tuple of ReferenceScore
        Scores of trivial methods, and of published ones.
    """

    target: Target
    labels: str
    examples: str
    counts: Mapping[str, SplitCount]
    floors: tuple[ReferenceScore, ...] = ()
    published: tuple[ReferenceScore, ...] = ()

    @property
    def is_derived(self) -> bool:
        """True if the task computes its labels, so that the card has no number of labeled residues or proteins."""
        return all(count.labeled is None for count in self.counts.values())


@dataclass(frozen=True)
class DatasetCard:
    """Description of a dataset.

    Parameters
    ----------
    split_rule : str
        How proteins were assigned to splits, and what no two splits share.
    splits : mapping of str to SplitCount
        Splits, in order.
    """

    name: str
    version: str
    license: str
    citation: str
    description: str
    split_rule: str
    splits: Mapping[str, SplitCount]
    tasks: Mapping[str, TaskCard]
    provenance: Provenance = field(default_factory=Provenance)


class _CountSchema(_Schema):
    proteins: int
    residues: int
    labeled: int | None = None
    per_class: list[int] = []

    def count(self) -> SplitCount:
        return SplitCount(self.proteins, self.residues, self.labeled, tuple(self.per_class))


class _SplitsSchema(_Schema):
    model_config = ConfigDict(extra="allow", strict=True)
    __pydantic_extra__: dict[str, _CountSchema]
    rule: str
    known_leaks: list[KnownLeak] = []


class _TaskSchema(_Schema):
    level: Literal["node", "edge", "graph", "pair"]
    kind: Literal["classification", "multilabel", "regression", "vectors", "coordinates"]
    size: int | None = None
    names: list[str] = []
    unit: str = "dimensionless"
    head: str | None = None
    separation: int = 0
    irreps: str = ""
    labels: str
    examples: str
    splits: dict[str, _CountSchema]
    floors: list[ReferenceScore] = []
    published: list[ReferenceScore] = []


class _CardSchema(_Schema):
    name: str
    version: str
    license: str
    citation: str
    description: str
    splits: _SplitsSchema
    tasks: dict[str, _TaskSchema]
    redistribution: str = ""
    weights_note: str = ""
    train_on: str = ""
    sources: list[SourceRepository] = []
    checksums: dict[str, str] = {}


def load_card(path: str | Path) -> DatasetCard:
    """Read ``dataset.toml``.

    Raises
    ------
    DatasetError
        If the file cannot be read, a key is missing or unknown, or a value is invalid; with the path of the key.
    """
    try:
        table = read_toml(Path(path), "dataset card")
    except OptionError as e:
        raise DatasetError(str(e)) from e
    return parse_card(table, where=str(path))


def parse_card(table: Mapping[str, Any], *, where: str = "card") -> DatasetCard:
    """Create a card from plain data; ``where`` is the file in error messages.

    Raises
    ------
    DatasetError
        If a key is missing or unknown, or a value is invalid; with the path of the key.

    Examples
    --------
    >>> parse_card({"name": 3})
    Traceback (most recent call last):
        ...
    protgraph.errors.DatasetError: card: name = 3. Allowed: a string.
    version is missing. ...
    """
    try:
        card = _CardSchema.model_validate(dict(table))
    except ValidationError as e:
        raise DatasetError(f"{where}: {describe_errors(e, keys=_keys)}") from e
    splits = {name: schema.count() for name, schema in (card.splits.__pydantic_extra__ or {}).items()}
    for leak in card.splits.known_leaks:
        if not {leak.split, leak.other} <= set(splits):
            raise DatasetError(f"{where}: splits.known_leaks: {leak.split!r}, {leak.other!r}: unknown split.")
    if not splits or not card.tasks:
        raise DatasetError(f"{where}: a card needs at least one split and one task")
    tasks = {name: _task(name, schema, set(splits), where) for name, schema in card.tasks.items()}
    provenance = Provenance(
        card.redistribution,
        card.weights_note,
        card.train_on,
        tuple(card.sources),
        tuple(sorted(card.checksums.items())),
        tuple(card.splits.known_leaks),
    )
    texts = (card.name, card.version, card.license, card.citation, card.description, card.splits.rule)
    return DatasetCard(*texts, MappingProxyType(splits), MappingProxyType(tasks), provenance)


def _task(name: str, task: _TaskSchema, splits: set[str], where: str) -> TaskCard:
    names, size = tuple(task.names), len(task.names) if task.size is None else task.size
    try:
        options = (task.unit, task.head, task.separation, task.irreps)
        target = Target(name, task.level, task.kind, size, names, *options)
    except DatasetError as e:
        raise DatasetError(f"{where}: tasks.{name}: {e}") from e
    for split, count in task.splits.items():
        path = f"{where}: tasks.{name}.splits.{split}"
        if split not in splits:
            raise DatasetError(f"{path}: unknown split. Splits of the card: {', '.join(sorted(splits))}.")
        if count.per_class and len(count.per_class) != target.size:
            raise DatasetError(f"{path}: per_class has {len(count.per_class)} counts for {target.size} classes")
    counts = {split: count.count() for split, count in task.splits.items()}
    floors, published = tuple(task.floors), tuple(task.published)
    return TaskCard(target, task.labels, task.examples, MappingProxyType(counts), floors, published)


def _keys(path: Sequence[int | str]) -> tuple[str, ...]:
    """Return the allowed keys beside a key of a card."""
    parents = path[:-1]
    if "floors" in parents or "published" in parents:
        kind: type[_Schema] = ReferenceScore
    elif "known_leaks" in parents:
        kind = KnownLeak
    elif parents and path[0] == "sources":
        kind = SourceRepository
    elif len(path) > 2 and "splits" in parents:
        kind = _CountSchema
    elif len(path) == 3:
        kind = _TaskSchema
    else:
        kind = _SplitsSchema if parents and path[0] == "splits" and len(path) == 2 else _CardSchema
    return tuple(kind.model_fields)
