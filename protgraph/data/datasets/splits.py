"""Splits of a dataset: random and by table; groups that stay together, and label counts that splits balance.

Not sklearn.model_selection.GroupShuffleSplit: its fractions count groups, so that 80 % of 54 proteins, 50 in one group,
are 53 or 4 depending on the seed; and it makes two splits. Not StratifiedGroupKFold: it makes equal folds only,
balances classes but not sizes, and assigns each group once without revision (scikit-learn 1.9.1, 2026-11-22).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from protgraph.data.datasets.target import Target
from protgraph.errors import DatasetError

if TYPE_CHECKING:
    from protgraph.data.datasets.dataset import Dataset

__all__ = [
    "FRACTIONS",
    "LabelStrata",
    "SplitAssignment",
    "SplitUnit",
    "assign_random_splits",
    "balance_groups",
    "cluster_proteins",
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
        links = self.sequences | other.sequences, self.clusters | other.clusters
        counts = tuple(a + b for a, b in zip(self.counts, other.counts, strict=True))
        return SplitUnit(min(self.name, other.name), *links, self.is_readable or other.is_readable, counts)


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
    counts, required = None, None
    if strata is not None:
        counts = np.array([proteins[i].counts for i in readable])
        required = strata.required
    readable_groups = [groups[i] for i in readable]
    assigned = group_split(readable_groups, fractions=fractions, seed=seed, counts=counts, required=required)
    splits = ["train"] * len(proteins)
    for i, split in zip(readable, assigned, strict=True):
        splits[i] = split
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
    counts = np.zeros((len(groups), 0)) if counts is None else np.asarray(counts).reshape(len(groups), -1)
    required = np.zeros(counts.shape[1]) if required is None else np.asarray(required)
    number = {group: i for i, group in enumerate(sorted(set(groups), key=str))}
    of_group = np.zeros((len(number), 1 + counts.shape[1]))  # proteins, then labels
    np.add.at(of_group, [number[group] for group in groups], np.column_stack([np.ones(len(groups)), counts]))
    weights = np.concatenate([[1.0], np.full(counts.shape[1], 1 / max(counts.shape[1], 1))])
    shares = np.array([fractions[name] for name in names])
    assigned = balance_groups(of_group, shares, weights, np.concatenate([[0.0], required]), seed=seed)
    return [names[assigned[number[group]]] for group in groups]


def _split_names(fractions: Mapping[str, float]) -> list[str]:
    """Return the splits that are not empty, after a check of their fractions."""
    names = [name for name, share in fractions.items() if share > 0]
    if not names or min(fractions.values()) < 0 or abs(sum(fractions.values()) - 1) > 1e-6:
        raise DatasetError(f"fractions {dict(fractions)} must be non-negative and sum to 1")
    return names


def cluster_proteins(dataset: Dataset, task: str, names: Sequence[str]) -> tuple[int, ...]:
    """Return the cluster of each named example of a task: those with common links (:meth:`Dataset.links`) share one."""
    examples = {example.id: example for example in dataset.examples(task)}
    return tuple(linked_groups([dataset.links(examples[name]) for name in names]))


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

    Parameters
    ----------
    values : ndarray
        ``(R,)`` int64 with −1 for unknown, or ``(R, C)`` float with NaN for unknown.

    Examples
    --------
    >>> import numpy as np
    >>> label_strata(np.array([[1.0], [0.0], [np.nan]]), Target("site", "node", "multilabel", 1)).counts
    array([[0, 1],
           [1, 0],
           [0, 0]])
    """
    if target.kind == "classification":
        counts = values[:, None] == np.arange(target.size)
        return LabelStrata(counts.astype(np.int64), np.full(target.size, (2 / target.size) ** 2), "classes")
    if target.kind == "multilabel":
        counts = np.concatenate([values == 0, values == 1], axis=1)
        return LabelStrata(
            counts.astype(np.int64), np.full(2 * target.size, 4 / target.size), "positives and negatives"
        )
    if target.kind == "regression":
        counts = np.concatenate([_ranges(column) for column in values.T], axis=1)
        return LabelStrata(counts.astype(np.int64), np.zeros(counts.shape[1]), "ranges of values")
    return None


def _ranges(values: np.ndarray) -> np.ndarray:
    """Return ``(R, Q)`` bool, the range of each value between quantiles; at least three values in a range."""
    known = values[~np.isnan(values)]
    number = int(np.clip(len(known) // 3, 1, _MOST_RANGES))
    edges = np.unique(np.quantile(known, np.linspace(0, 1, number + 1)[1:-1])) if known.size else np.zeros(0)
    place = np.where(np.isnan(values), -1, np.searchsorted(edges, values, side="right"))
    return place[:, None] == np.arange(len(edges) + 1)


def order_splits(names: Collection[str]) -> list[str]:
    """Return train, val and test first, and other splits in sorted order.

    Examples
    --------
    >>> order_splits({"far", "test", "train"})
    ['train', 'test', 'far']
    """
    return [name for name in _FIRST if name in names] + sorted(set(names) - set(_FIRST))


_EMPTY = 100.0  # cost of a split without any protein, above that of every other fault
_SWAPS = 400  # number of groups up to which pairs of groups are exchanged
_STARTS = 4  # random orders up to that number of groups
_SWEEPS = 50
_GAIN = 1e-12  # least improvement of a step


def imbalance(totals: np.ndarray, shares: np.ndarray, weights: np.ndarray, required: np.ndarray) -> np.ndarray:
    """Compute the imbalance of splits.

    It is Σ_s Σ_k w_k (n_sk / T_k − p_s)² / p_s, plus r_k for each required column k that a split s lacks. n_sk is the
    count in the split, T_k the count in all splits, and p_s the share of the split.

    Parameters
    ----------
    totals : ndarray
        ``(…, S, K)`` counts n of each split. Columns without any count have no effect.
    shares : ndarray
        ``(S,)`` share of each split; they sum to 1.
    weights, required : ndarray
        ``(K,)`` weight w of each column, and cost r of a split that lacks it. The cost is up to 10 % higher for earlier
        splits, so that a column of few groups is in these.

    Returns
    -------
    ndarray
        ``(…)``.
    """
    sums = totals.sum(-2, keepdims=True)
    fraction, share = totals / np.where(sums > 0, sums, 1), shares[:, None]
    priority = np.linspace(1.1, 1, len(shares))[:, None]
    cost = weights * (fraction - share) ** 2 / share + priority * required * (totals == 0)
    return np.where(sums > 0, cost, 0).sum((-2, -1))


def balance_groups(
    counts: np.ndarray, shares: np.ndarray, weights: np.ndarray, required: np.ndarray, *, seed: int
) -> np.ndarray:
    """Assign groups to splits with small :func:`imbalance`: greedily in random order, then by moves and swaps.

    Parameters
    ----------
    counts : ndarray
        ``(G, K)`` non-negative whole numbers, the counts of each group. Column 0 is the number of proteins.
    shares, weights, required : ndarray
        ``(S,)``, ``(K,)`` and ``(K,)``; see :func:`imbalance`.

    Returns
    -------
    ndarray
        ``(G,)`` int64, number of the split of each group. No move of one group to another split reduces the imbalance.
        Up to 400 groups, no swap of two does, and it is the best of four random orders.
    """
    counts, required = counts.astype(np.float64), required.astype(np.float64)
    required[0] = _EMPTY
    random, starts = np.random.default_rng(seed), _STARTS if len(counts) <= _SWAPS else 1
    found = [_search(counts, shares, weights, required, random.permutation(len(counts))) for _ in range(starts)]
    best = min(range(starts), key=lambda i: round(found[i][0], 9))  # the first of equals
    return found[best][1]


def _search(
    counts: np.ndarray, shares: np.ndarray, weights: np.ndarray, required: np.ndarray, order: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the imbalance and the splits of one random order of groups."""
    totals = np.zeros((len(shares), counts.shape[1]))  # (S, K)
    split = _greedy(counts, order, totals, shares, weights)

    def improve(g: int) -> bool:
        """Apply the best move or swap of a group; return False if none reduces the imbalance."""
        here = split[g]
        elsewhere = np.flatnonzero(split != here) if len(counts) <= _SWAPS else np.zeros(0, np.int64)
        target = np.concatenate([np.delete(np.arange(len(shares)), here), split[elsewhere]])  # (M,) moves, then swaps
        moved = np.tile(counts[g], (len(target), 1))  # (M, K)
        moved[len(shares) - 1 :] -= counts[elsewhere]
        after = np.tile(totals, (len(target), 1, 1))  # (M, S, K)
        after[:, here] -= moved
        after[np.arange(len(target)), target] += moved
        cost = imbalance(after, shares, weights, required)
        best = int(np.argmin(cost)) if len(cost) else -1
        if best < 0 or cost[best] >= imbalance(totals, shares, weights, required) - _GAIN:
            return False
        if best >= len(shares) - 1:
            split[elsewhere[best - len(shares) + 1]] = here
        split[g] = target[best]
        totals[:] = after[best]
        return True

    for _ in range(_SWEEPS):
        if not sum([improve(g) for g in order]):
            break
    return float(imbalance(totals, shares, weights, required)), split


def _greedy(
    counts: np.ndarray, order: np.ndarray, totals: np.ndarray, shares: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Assign each group to the split where the squares of :func:`imbalance` grow least; ``totals`` is filled."""
    split = np.zeros(len(counts), dtype=np.int64)
    whole = counts.sum(0)
    scale = np.where(whole > 0, whole, 1)
    for g in order:
        own, filled = counts[g] / scale, totals / scale
        growth = (weights * own * (2 * (filled - shares[:, None]) + own) / shares[:, None]).sum(1)  # (S,)
        split[g] = int(np.argmin(growth))
        totals[split[g]] += counts[g]
    return split
