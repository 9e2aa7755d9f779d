"""Splits of proteins into train, validation and test, so that what belongs together stays together."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence

import numpy as np

from protgraph.errors import DatasetError

__all__ = ["FRACTIONS", "connected_groups", "group_split", "linked_groups", "random_split"]

FRACTIONS: Mapping[str, float] = {"train": 0.8, "val": 0.1, "test": 0.1}


def random_split(ids: Sequence[str], *, fractions: Mapping[str, float] = FRACTIONS, seed: int = 0) -> list[str]:
    """A random split of each protein; the same proteins in another order get the same splits.

    Parameters
    ----------
    ids : sequence of str
        What each protein is called; equal names go to one split.
    fractions : mapping of str to float
        Share of each split; they add up to 1.
    seed : int
        Another seed, another split.

    Returns
    -------
    list of str
        The split of each.
    """
    return group_split(ids, fractions=fractions, seed=seed)


def group_split(groups: Sequence[Hashable], *, fractions: Mapping[str, float] = FRACTIONS, seed: int = 0) -> list[str]:
    """A random split in which no group (a homology cluster, say) is divided.

    Groups are taken in random order; each goes to the split that is furthest below its share, and every split gets
    one while there are groups enough.

    Examples
    --------
    >>> group_split(["a", "a", "b", "b"], fractions={"train": 0.5, "test": 0.5}, seed=0)
    ['train', 'train', 'test', 'test']
    """
    names = [name for name, share in fractions.items() if share > 0]
    if not names or min(fractions.values()) < 0 or abs(sum(fractions.values()) - 1) > 1e-6:
        raise DatasetError(f"fractions {dict(fractions)} are not shares that add up to 1")
    distinct = sorted(set(groups), key=str)
    size = dict.fromkeys(distinct, 0)
    for group in groups:
        size[group] += 1
    wanted = np.array([fractions[name] for name in names]) * len(groups)
    held = np.zeros(len(names))
    where: dict[Hashable, str] = {}
    for number, at in enumerate(np.random.default_rng(seed).permutation(len(distinct))):
        left = len(distinct) - number
        empty = held == 0
        missing = wanted - held
        if left <= empty.sum():  # only just enough groups: the empty splits first
            missing = np.where(empty, missing, -np.inf)
        best = int(np.argmax(missing))
        held[best] += size[distinct[at]]
        where[distinct[at]] = names[best]
    return [where[group] for group in groups]


def connected_groups(*columns: Sequence[Hashable | None]) -> list[int]:
    """Number the connected components of rows that share a value in any column.

    Parameters
    ----------
    *columns : sequence of hashable
        One value a row (its file, its cluster, …); None links to nothing.

    Returns
    -------
    list of int
        Component of each row, from 0 in order of appearance.

    Examples
    --------
    >>> connected_groups(["1abc", "1abc", "2xyz", "3foo"], ["c1", "c2", "c2", None])
    [0, 0, 0, 1]
    """
    parent = list(range(len(columns[0])))

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = row = parent[parent[row]]
        return row

    for column in columns:
        first: dict[Hashable, int] = {}
        for row, value in enumerate(column):
            if value is not None:
                parent[root(row)] = root(first.setdefault(value, row))
    number: dict[int, int] = {}
    return [number.setdefault(root(row), len(number)) for row in range(len(parent))]


def linked_groups(links: Sequence[Collection[Hashable]]) -> list[int]:
    """Number the connected components of things that share any link, from 0 in order of appearance.

    Parameters
    ----------
    links : sequence of collection of hashable
        What may tie each thing to others: its cluster, the sequences of its chains. One without any is alone.

    Examples
    --------
    >>> linked_groups([{"a"}, {"b"}, {"a", "c"}, (), {"c"}])
    [0, 1, 0, 2, 0]
    """
    pairs = [(thing, link) for thing, own in enumerate(links) for link in (None, *own)]
    group = connected_groups(*zip(*pairs, strict=True)) if pairs else []
    first = {thing: g for (thing, _), g in zip(reversed(pairs), reversed(group), strict=True)}
    return [first[thing] for thing in range(len(links))]
