"""Input records, and their grouping to shards by expected size and name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from protgraph.data.cache_key import digest
from protgraph.errors import OptionError

__all__ = ["SHARD_RESIDUES", "InputRecord", "ShardTask", "split_shards"]

SHARD_RESIDUES = 25_000
"""Expected residues per shard: about a second of work, and 50 MB with 30 neighbors and 16 radial functions."""


@dataclass(frozen=True, slots=True)
class InputRecord:
    """One input of a store, e.g. a file; it gives any number of proteins.

    Parameters
    ----------
    label : str
        Unique name.
    residues : float
        Expected number of residues, from the size of the file.
    data : object
        What the work reads; picklable.
    """

    label: str
    residues: float
    data: object = None


@dataclass(frozen=True)
class ShardTask:
    """The records of one shard, in order.

    Parameters
    ----------
    number : int
        Place of the shard in the store.
    deadly : frozenset of str
        Labels of records at which processes die; they become failures.
    """

    number: int
    records: tuple[InputRecord, ...]
    deadly: frozenset[str] = frozenset()

    @cached_property
    def name(self) -> str:
        """Digest of the labels."""
        return digest([record.label for record in self.records])

    @property
    def residues(self) -> float:
        """Expected number of residues."""
        return sum(record.residues for record in self.records)


def split_shards(records: Iterable[InputRecord], *, residues: int = SHARD_RESIDUES) -> Iterator[ShardTask]:
    """Group records to shards, in order, without reading ahead.

    A shard has between half and twice the expected residues; in this range, it ends after a record whose hashed name
    is below a threshold (content-defined chunking). If records are added, removed or changed, the boundaries of
    other shards stay where they are.

    Parameters
    ----------
    residues : int
        Mean of the expected residues of a shard. A larger record is a shard of its own.

    Examples
    --------
    >>> records = [InputRecord(f"{n}.pdb", 300) for n in range(1000)]
    >>> before = {task.name for task in split_shards(records, residues=3000)}
    >>> after = {task.name for task in split_shards([InputRecord("first.pdb", 300), *records], residues=3000)}
    >>> len(before), len(after - before)
    (109, 1)
    """
    if residues < 1:
        raise OptionError(f"split_shards: residues = {residues}. Allowed: 1 or more.")
    least, most = residues / 2, residues * 2
    number, total = 0, 0.0
    group: list[InputRecord] = []
    for record in records:
        if group and total + record.residues > most:
            yield ShardTask(number, tuple(group))
            number, group, total = number + 1, [], 0.0
        group.append(record)
        total += record.residues
        if total >= least and _fraction(record.label) < record.residues / least:
            yield ShardTask(number, tuple(group))
            number, group, total = number + 1, [], 0.0
    if group:
        yield ShardTask(number, tuple(group))


def _fraction(label: str) -> float:
    """Return the hash of the last part of a label as a number from 0 to 1."""
    name = label.rpartition("/")[2].encode(errors="surrogateescape")
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "big") / 2**64
