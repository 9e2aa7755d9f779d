"""Splits of a dataset: random and by table; groups that stay together, and label counts that splits balance.

Not sklearn.model_selection.GroupShuffleSplit: its fractions count groups, so that 80 % of 54 proteins, 50 in one group,
are 53 or 4 depending on the seed; and it makes two splits. Not StratifiedGroupKFold: it makes equal folds only,
balances classes but not sizes, and assigns each group once without revision (scikit-learn 1.9.1, 2026-11-22).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from protgraph.data.datasets.target import Target
from protgraph.errors import DatasetError

__all__ = [
    "FRACTIONS",
    "LabelStrata",
    "SplitAssignment",
    "SplitUnit",
    "assign_random_splits",
    "balance_groups",
    "group_split",
    "imbalance",
    "label_strata",
    "linked_groups",
    "order_splits",
    "splits_from_table",
]

FRACTIONS: Mapping[str, float] = {"train": 0.8, "val": 0.1, "test": 0.1}
"""Default fractions of a random split."""

_FIRST = ("train", "val", "test")  # splits, before others
_MOST_RANGES = 5  # quantile ranges of the numbers of a column
_SPLIT_NAMES = {
    **{name: name for name in ("train", "val", "test")},
    "training": "train",
    "validation": "val",
    "valid": "val",
    "dev": "val",
    "testing": "test",
}  # name in lower case → split


class SplitUnit(NamedTuple):
    """Protein to assign to a split, and its links to other proteins.

    Parameters
    ----------
    name : str
        Unique name.
    sequences : frozenset of str
        Digests of the sequences of its chains; see :class:`protgraph.data.datasets.fingerprint.Fingerprint`.
    clusters : frozenset of str
        Clusters from the table.
    is_readable : bool
        False if no protein can be read from the file.
    counts : tuple of int
        Label counts of the protein in each stratum (:class:`LabelStrata`).
    """

    name: str
    sequences: frozenset[str] = frozenset()
    clusters: frozenset[str] = frozenset()
    is_readable: bool = True
    counts: tuple[int, ...] = ()

    def merge(self, other: SplitUnit) -> SplitUnit:
        """Merge two units; the name is the first in sorted order, and label counts are added."""
        return SplitUnit(
            name=min(self.name, other.name),
            sequences=self.sequences | other.sequences,
            clusters=self.clusters | other.clusters,
            is_readable=self.is_readable or other.is_readable,
            counts=tuple(a + b for a, b in zip(self.counts, other.counts, strict=True)),
        )


@dataclass(frozen=True)
class SplitAssignment:
    """Result of :func:`assign_random_splits` and :func:`splits_from_table`."""

    splits: tuple[str, ...]  # split of each protein
    rule: str  # rule of the assignment, for the dataset card
    notes: tuple[str, ...] = ()  # messages for the user, e.g. about shared sequences


def assign_random_splits(
    proteins: Sequence[SplitUnit], *, fractions: Mapping[str, float], seed: int, strata: LabelStrata | None = None
) -> SplitAssignment:
    """Assign proteins to random splits; proteins linked by clusters or equal sequences stay together.

    With ``strata``, the label counts of the proteins are balanced over the splits. The result does not depend on the
    order of proteins. Unreadable proteins are assigned to the training split.
    """
    groups = _linked_proteins(proteins)
    readable = [i for i, protein in enumerate(proteins) if protein.is_readable]
    counts = None
    required = None
    if strata is not None:
        counts = np.array([proteins[i].counts for i in readable])
        required = strata.required
    readable_groups = [groups[i] for i in readable]
    assigned = group_split(readable_groups, fractions=fractions, seed=seed, counts=counts, required=required)
    splits = ["train"] * len(proteins)
    for i, split in zip(readable, assigned, strict=True):
        splits[i] = split

    # what a user may not expect
    notes = []
    linked = _count_with_shared_sequence(proteins)
    if linked:
        notes.append(
            f"{linked} of {len(readable)} proteins share a sequence with another protein and are in the same split"
        )
    empty = _empty_splits(fractions, assigned)
    if empty:
        notes.append(f"no proteins are left for {' and '.join(empty)}: add proteins, or a table with a column 'split'")
    rule = _random_rule(proteins, fractions, seed, strata)
    return SplitAssignment(tuple(splits), rule, tuple(notes))


def _random_rule(
    proteins: Sequence[SplitUnit], fractions: Mapping[str, float], seed: int, strata: LabelStrata | None
) -> str:
    """Return the rule of random splits, for the dataset card."""
    by = "a sequence or cluster" if any(protein.clusters for protein in proteins) else "a sequence"
    shares = ", ".join(f"{name} {share:g}" for name, share in fractions.items())
    rule = f"random, seed {seed}, {shares}; proteins that share {by} are in the same split"
    if strata is not None:
        rule += f"; {strata.text} are balanced over the splits"
    return rule


def _empty_splits(fractions: Mapping[str, float], assigned: Sequence[str]) -> list[str]:
    """Return the splits that should have proteins and have none."""
    return [name for name, share in fractions.items() if share > 0 and name not in assigned]


def _linked_proteins(proteins: Sequence[SplitUnit]) -> list[str]:
    """Return the group of each protein, linked by sequences and clusters; its name is the first of its proteins."""
    links = []
    for protein in proteins:
        sequences = {("sequence", sequence) for sequence in protein.sequences}
        clusters = {("cluster", cluster) for cluster in protein.clusters}
        links.append(sequences | clusters)
    groups = linked_groups(links)
    first: dict[int, str] = {}
    for group, protein in zip(groups, proteins, strict=True):
        first[group] = min(first.get(group, protein.name), protein.name)
    return [first[group] for group in groups]


def _count_with_shared_sequence(proteins: Sequence[SplitUnit]) -> int:
    """Return the number of proteins with a sequence that another protein has, too."""
    frequency = Counter(sequence for protein in proteins for sequence in protein.sequences)
    count = 0
    for protein in proteins:
        if any(frequency[sequence] > 1 for sequence in protein.sequences):
            count += 1
    return count


def splits_from_table(splits: Sequence[str], proteins: Sequence[SplitUnit], where: str) -> SplitAssignment:
    """Check the splits of a table, and note sequences that are in more than one split."""
    stated = sorted(set(splits))
    split_of = {name: _SPLIT_NAMES.get(name.lower(), name) for name in stated}
    splits = [split_of[name] for name in splits]
    notes = [f"split {name!r} is {split_of[name]}" for name in stated if name != split_of[name]]
    further = [name for name in stated if split_of[name] not in _SPLIT_NAMES]
    if further:
        notes.append(f"further test sets, not trained on: {', '.join(map(repr, further))}")
    if "train" not in splits:
        raise DatasetError(
            f"{where}: no protein is in split 'train', only in {stated}. Use the names train, val, test."
        )
    crossing = _crossing_sequences(splits, proteins)
    if crossing:
        number = "1 sequence is" if len(crossing) == 1 else f"{len(crossing)} sequences are"
        names = ", ".join(sorted(set.union(*crossing)))
        notes.append(f"{number} in more than one split ({names}) of {where}")
    return SplitAssignment(tuple(splits), f"column 'split' of {where}", tuple(notes))


def _crossing_sequences(splits: Sequence[str], proteins: Sequence[SplitUnit]) -> list[set[str]]:
    """Return the splits of each sequence that is in more than one of them."""
    splits_of: dict[str, set[str]] = {}
    for split, protein in zip(splits, proteins, strict=True):
        for sequence in protein.sequences:
            splits_of.setdefault(sequence, set()).add(split)
    return [names for names in splits_of.values() if len(names) > 1]


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
    (:func:`protgraph.data.datasets.splits.balance_groups`). Every split gets a group if there are enough. The
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
    names = _split_names(fractions)
    if len(groups) == 0:
        return []
    shares = np.array([fractions[name] for name in names])
    if counts is None:
        counts = np.zeros((len(groups), 0))
    else:
        counts = np.asarray(counts).reshape(len(groups), -1)
    num_labels = counts.shape[1]
    if required is None:
        required = np.zeros(num_labels)

    # sums of each group: proteins, then labels, which weigh together as much as the proteins
    sorted_groups = sorted(set(groups), key=str)
    number_of = {group: i for i, group in enumerate(sorted_groups)}
    number = [number_of[group] for group in groups]
    counts_of_group = np.zeros((len(sorted_groups), 1 + num_labels))
    np.add.at(counts_of_group, number, np.column_stack([np.ones(len(groups)), counts]))
    label_weight = 1 / max(num_labels, 1)
    weights = np.concatenate([[1.0], np.full(num_labels, label_weight)])
    required = np.concatenate([[0.0], np.asarray(required)])

    split_of_group = balance_groups(counts_of_group, shares, weights, required, seed=seed)
    return [names[split_of_group[i]] for i in number]


def _split_names(fractions: Mapping[str, float]) -> list[str]:
    """Return the splits that are not empty, after a check of their fractions."""
    names = [name for name, share in fractions.items() if share > 0]
    if not names or min(fractions.values()) < 0 or abs(sum(fractions.values()) - 1) > 1e-6:
        raise DatasetError(f"fractions {dict(fractions)} must be non-negative and sum to 1")
    return names


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
    if not links:
        return []

    # a graph of the items, and after them one vertex for each distinct link
    count = len(links)
    vertex_of: dict[Hashable, int] = {}
    items: list[int] = []
    vertices: list[int] = []
    for item, links_of_item in enumerate(links):
        for link in links_of_item:
            items.append(item)
            vertices.append(vertex_of.setdefault(link, count + len(vertex_of)))
    size = count + len(vertex_of)
    graph = coo_array((np.ones(len(items), dtype=bool), (items, vertices)), shape=(size, size))
    _, component = connected_components(graph, directed=False)

    number_of: dict[int, int] = {}  # in order of appearance
    return [number_of.setdefault(c, len(number_of)) for c in component[:count].tolist()]


@dataclass(frozen=True, eq=False)
class LabelStrata:
    """Counts of the labels of each table row in the strata that splits balance."""

    counts: np.ndarray  # ``(R, K)`` int64: 1 where the label of a row is in a stratum
    # ``(K,)`` cost of a split that lacks a stratum; see :func:`protgraph.data.datasets.splits.imbalance`
    required: np.ndarray
    text: str  # names of what is balanced, e.g. "classes"

    def of(self, rows: np.ndarray) -> tuple[int, ...]:
        """Return the K counts of these ``rows (M,)``."""
        return tuple(self.counts[rows].sum(0).tolist())


def label_strata(values: np.ndarray, target: Target) -> LabelStrata | None:
    """Return the strata of labels: each class; positives and negatives of each label; or quantile ranges of each value.

    ``values``: ``(R,)`` int64 with −1 for unknown, or ``(R, C)`` float with NaN for unknown.

    Examples
    --------
    >>> import numpy as np
    >>> label_strata(np.array([[1.0], [0.0], [np.nan]]), Target("site", "node", "multilabel", 1)).counts
    array([[0, 1],
           [1, 0],
           [0, 0]])
    """
    if target.kind == "classification":
        is_in = values[:, None] == np.arange(target.size)
        required = np.full(target.size, (2 / target.size) ** 2)
        text = "classes"
    elif target.kind == "multilabel":
        is_in = np.concatenate([values == 0, values == 1], axis=1)
        required = np.full(2 * target.size, 4 / target.size)
        text = "positives and negatives"
    elif target.kind == "regression":
        is_in = np.concatenate([_ranges(column) for column in values.T], axis=1)
        required = np.zeros(is_in.shape[1])
        text = "ranges of values"
    else:
        return None
    return LabelStrata(is_in.astype(np.int64), required, text)


def _ranges(values: np.ndarray) -> np.ndarray:
    """Return ``(R, Q)`` bool, the range of each value between quantiles; at least three values in a range."""
    is_unknown = np.isnan(values)
    known = values[~is_unknown]
    edges = np.zeros(0)
    if known.size:
        num_ranges = int(np.clip(len(known) // 3, 1, _MOST_RANGES))
        inner = np.linspace(0, 1, num_ranges + 1)[1:-1]
        edges = np.unique(np.quantile(known, inner))
    number = np.searchsorted(edges, values, side="right")
    number[is_unknown] = -1
    return number[:, None] == np.arange(len(edges) + 1)


def order_splits(names: Collection[str]) -> list[str]:
    """Return train, val and test first, and other splits in sorted order.

    Examples
    --------
    >>> order_splits({"far", "test", "train"})
    ['train', 'test', 'far']
    """
    first = [name for name in _FIRST if name in names]
    further = set(names) - set(_FIRST)
    return first + sorted(further)


_EMPTY = 100.0  # cost of a split without any protein, above that of every other fault
_SWAPS = 400  # number of groups up to which pairs of groups are exchanged
_STARTS = 4  # random orders up to that number of groups
_SWEEPS = 50
_GAIN = 1e-12  # least improvement of a step


def imbalance(totals: np.ndarray, shares: np.ndarray, weights: np.ndarray, required: np.ndarray) -> np.ndarray:
    """Compute the imbalance of splits.

    It is Σ_s Σ_k w_k (n_sk / T_k − p_s)² / p_s, plus r_k for each required column k that a split s lacks. n_sk is the
    count in the split, T_k the count in all splits, and p_s the share of the split.

    ``totals``: ``(…, S, K)`` counts n of each split. Columns without any count have no effect. ``shares``: ``(S,)``
    share of each split; they sum to 1. ``weights``, ``required``: ``(K,)`` weight w of each column, and cost r of a
    split that lacks it. The cost is up to 10 % higher for earlier splits, so that a column of few groups is in these.
    Returns ``(…)``.
    """
    sums = totals.sum(-2, keepdims=True)
    fraction = totals / np.where(sums > 0, sums, 1)
    share = shares[:, None]
    deviation = weights * (fraction - share) ** 2 / share
    priority = np.linspace(1.1, 1, len(shares))[:, None]
    absence = priority * required * (totals == 0)
    cost = np.where(sums > 0, deviation + absence, 0)
    return cost.sum((-2, -1))


def balance_groups(
    counts: np.ndarray, shares: np.ndarray, weights: np.ndarray, required: np.ndarray, *, seed: int
) -> np.ndarray:
    """Assign groups to splits with small :func:`imbalance`: greedily in random order, then by moves and swaps.

    ``counts``: ``(G, K)`` non-negative whole numbers, the counts of each group. Column 0 is the number of proteins.
    ``shares``, ``weights``, ``required``: ``(S,)``, ``(K,)`` and ``(K,)``; see :func:`imbalance`. Returns ``(G,)``
    int64, number of the split of each group. No move of one group to another split reduces the imbalance. Up to 400
    groups, no swap of two does, and it is the best of four random orders.
    """
    counts = counts.astype(np.float64)
    required = required.astype(np.float64)
    required[0] = _EMPTY
    random = np.random.default_rng(seed)
    num_starts = _STARTS if len(counts) <= _SWAPS else 1
    best_cost = np.inf
    best_split = np.zeros(len(counts), np.int64)
    for _ in range(num_starts):
        cost, split = _search(counts, shares, weights, required, random.permutation(len(counts)))
        if round(cost, 9) < best_cost:  # the first of equals
            best_cost = round(cost, 9)
            best_split = split
    return best_split


def _search(
    counts: np.ndarray, shares: np.ndarray, weights: np.ndarray, required: np.ndarray, order: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the imbalance and the splits of one random order of groups."""
    totals = np.zeros((len(shares), counts.shape[1]))  # (S, K)
    split = _greedy(counts, order, shares, weights)
    np.add.at(totals, split[order], counts[order])

    def improve(g: int) -> bool:
        """Apply the best move or swap of a group; return False if none reduces the imbalance."""
        # M targets: the other splits, then the groups of other splits, to swap with
        here = split[g]
        other_splits = np.delete(np.arange(len(shares)), here)
        partners = np.zeros(0, np.int64)
        if len(counts) <= _SWAPS:
            partners = np.flatnonzero(split != here)
        target = np.concatenate([other_splits, split[partners]])  # (M,)
        if not len(target):
            return False

        moved = np.tile(counts[g], (len(target), 1))  # (M, K)
        moved[len(other_splits) :] -= counts[partners]
        after = np.tile(totals, (len(target), 1, 1))  # (M, S, K)
        after[:, here] -= moved
        after[np.arange(len(target)), target] += moved
        cost = imbalance(after, shares, weights, required)
        best = int(np.argmin(cost))
        if cost[best] >= imbalance(totals, shares, weights, required) - _GAIN:
            return False

        if best >= len(other_splits):
            partner = partners[best - len(other_splits)]
            split[partner] = here
        split[g] = target[best]
        totals[:] = after[best]
        return True

    for _ in range(_SWEEPS):
        improved = [improve(g) for g in order]
        if not any(improved):
            break
    return float(imbalance(totals, shares, weights, required)), split


def _greedy(counts: np.ndarray, order: np.ndarray, shares: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Assign each group to the split where the squares of :func:`imbalance` grow least."""
    totals = np.zeros((len(shares), counts.shape[1]))  # (S, K)
    split = np.zeros(len(counts), dtype=np.int64)
    sums = counts.sum(0)
    scale = np.where(sums > 0, sums, 1)
    share = shares[:, None]
    for g in order:
        added = counts[g] / scale
        filled = totals / scale
        growth = weights * added * (2 * (filled - share) + added) / share
        split[g] = int(np.argmin(growth.sum(1)))
        totals[split[g]] += counts[g]
    return split
