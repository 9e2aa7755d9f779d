"""Random splits and folds in which groups stay together, and the groups themselves.

Not sklearn.model_selection.GroupShuffleSplit: its fractions count groups, so that 80 % of 54 proteins, 50 in one group,
are 53 or 4 depending on the seed; and it makes two splits (scikit-learn 1.9.1, 2026-11-22).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from protgraph.data.datasets.split_balance import balance_groups
from protgraph.errors import DatasetError

__all__ = ["FRACTIONS", "group_split", "linked_groups"]

FRACTIONS: Mapping[str, float] = {"train": 0.8, "val": 0.1, "test": 0.1}
"""Default fractions of a random split."""


def group_split(
    groups: Sequence[Hashable],
    *,
    fractions: Mapping[str, float] = FRACTIONS,
    seed: int = 0,
    counts: np.ndarray | None = None,
    required: np.ndarray | None = None,
) -> list[str]:
    """Assign each protein to a random split without dividing groups, e.g. homology clusters.

    The number of proteins and, with ``counts``, the label counts of each split are close to its fraction
    (:func:`protgraph.data.datasets.split_balance.balance_groups`). Every split gets a group if there are enough. The
    result does not depend on the order of proteins.

    Parameters
    ----------
    groups : sequence of hashable
        Group of each protein; its identifier if all proteins are independent.
    fractions : mapping of str to float
        Fraction of each split; they sum to 1.
    seed : int
        Seed of the order of groups.
    counts : ndarray, optional
        ``(P, K)`` whole numbers, e.g. the labels of each class of each protein.
    required : ndarray, optional
        ``(K,)`` cost of a split that lacks a column of ``counts``. Default: 0.

    Returns
    -------
    list of str
        Split of each protein.

    Raises
    ------
    DatasetError
        If the fractions are negative or do not sum to 1.

    Examples
    --------
    >>> group_split(["a", "a", "b", "b"], fractions={"train": 0.5, "test": 0.5}, seed=0)
    ['train', 'train', 'test', 'test']
    """
    names = [name for name, share in fractions.items() if share > 0]
    if not names or min(fractions.values()) < 0 or abs(sum(fractions.values()) - 1) > 1e-6:
        raise DatasetError(f"fractions {dict(fractions)} must be non-negative and sum to 1")
    counts = np.zeros((len(groups), 0)) if counts is None else np.asarray(counts).reshape(len(groups), -1)
    required = np.zeros(counts.shape[1]) if required is None else np.asarray(required)
    number = {group: i for i, group in enumerate(sorted(set(groups), key=str))}
    of_group = np.zeros((len(number), 1 + counts.shape[1]))  # proteins, then labels
    np.add.at(of_group, [number[group] for group in groups], np.column_stack([np.ones(len(groups)), counts]))
    weights = np.concatenate([[1.0], np.full(counts.shape[1], 1 / max(counts.shape[1], 1))])
    shares = np.array([fractions[name] for name in names])
    assigned = balance_groups(of_group, shares, weights, np.concatenate([[0.0], required]), seed=seed)
    return [names[assigned[number[group]]] for group in groups]


def linked_groups(links: Sequence[Collection[Hashable]]) -> list[int]:
    """Return the connected component of each item, where items with a common link are connected.

    Parameters
    ----------
    links : sequence of collection of hashable
        Links of each item, e.g. its cluster and the sequences of its chains. An item without links is its own
        component.

    Returns
    -------
    list of int
        Component of each item, from 0 in order of appearance.

    Examples
    --------
    >>> linked_groups([{"a"}, {"b"}, {"a", "c"}, (), {"c"}])
    [0, 1, 0, 2, 0]
    """
    count = len(links)
    vertex: dict[Hashable, int] = {}  # each distinct link is a vertex after the items
    pairs = [(i, vertex.setdefault(link, count + len(vertex))) for i, own in enumerate(links) for link in own]
    item, link = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    size = count + len(vertex)
    graph = coo_array((np.ones(len(item), dtype=bool), (item, link)), shape=(size, size))
    component = connected_components(graph, directed=False)[1][:count] if size else np.zeros(0, np.int64)
    number: dict[int, int] = {}
    return [number.setdefault(c, len(number)) for c in component.tolist()]
