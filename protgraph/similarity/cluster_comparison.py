"""Comparison of two clusterings of the same proteins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

__all__ = ["ClusterComparison", "compare_clusters"]

_SHOWN = 3


@dataclass(frozen=True)
class ClusterComparison:
    """Result of :func:`compare_clusters`; ``str`` returns it in lines.

    Parameters
    ----------
    proteins : int
    clusters : tuple of int
        Clusters of each clustering.
    adjusted_rand : float
        Adjusted Rand index: 1 for equal clusterings, 0 on average for random ones of the same sizes.
    together : int
        Pairs that are in one cluster in both.
    first_only, second_only : int
        Pairs that are in one cluster in one clustering only.
    split_by_second, split_by_first : tuple of tuple
        Clusters of one clustering whose members are in several clusters of the other: their name, the number of their
        members and the largest parts; those of most separated pairs first.
    """

    proteins: int
    clusters: tuple[int, int]
    adjusted_rand: float
    together: int
    first_only: int
    second_only: int
    split_by_second: tuple[tuple[Hashable, int, tuple[int, ...]], ...]
    split_by_first: tuple[tuple[Hashable, int, tuple[int, ...]], ...]

    def __str__(self) -> str:
        lines = [
            f"{self.proteins} proteins in {self.clusters[0]} and {self.clusters[1]} clusters; adjusted Rand index "
            f"{self.adjusted_rand:.4f}",
            f"pairs in one cluster: {self.together} in both, {self.first_only} in the first only, {self.second_only} "
            "in the second only",
        ]
        for name, divided in (("first", self.split_by_second), ("second", self.split_by_first)):
            for cluster, size, parts in divided[:_SHOWN]:
                more = f" and {size - sum(parts)} in smaller ones" if sum(parts) < size else ""
                text = " + ".join(map(str, parts))
                lines.append(f"  cluster {cluster} of the {name}, {size} proteins, is divided: {text}{more}")
            if len(divided) > _SHOWN:
                lines.append(f"  and {len(divided) - _SHOWN} more clusters of the {name} are divided")
        return "\n".join(lines)


def compare_clusters(first: Sequence[Hashable], second: Sequence[Hashable]) -> ClusterComparison:
    """Compare two clusterings by the pairs of proteins that they keep together (Hubert & Arabie 1985).

    Parameters
    ----------
    first, second : sequence
        Cluster of each protein.

    Examples
    --------
    >>> found = compare_clusters(["a", "a", "a", "b"], [1, 1, 2, 3])
    >>> found.together, found.first_only, found.second_only, round(found.adjusted_rand, 3)
    (1, 2, 0, 0.333)
    """
    cells = Counter(zip(first, second, strict=True))
    rows, columns = Counter(first), Counter(second)
    together, in_first, in_second = (sum(n * (n - 1) // 2 for n in c.values()) for c in (cells, rows, columns))
    total = len(first) * (len(first) - 1) // 2
    expected = in_first * in_second / total if total else 0.0
    largest = (in_first + in_second) / 2
    index = 1.0 if largest == expected else (together - expected) / (largest - expected)
    return ClusterComparison(
        len(first),
        (len(rows), len(columns)),
        index,
        together,
        in_first - together,
        in_second - together,
        _divided(cells, rows, 0),
        _divided(cells, columns, 1),
    )


def _divided(
    cells: Counter[tuple[Hashable, Hashable]], sizes: Counter[Hashable], side: int
) -> tuple[tuple[Hashable, int, tuple[int, ...]], ...]:
    """Return the clusters with members in several clusters of the other clustering, with their three largest parts."""
    parts: dict[Hashable, list[int]] = {}
    for pair, number in cells.items():
        parts.setdefault(pair[side], []).append(number)
    found = [(c, sizes[c], tuple(sorted(p, reverse=True))) for c, p in parts.items() if len(p) > 1]
    separated = {c: n * n - sum(k * k for k in p) for c, n, p in found}
    return tuple((c, n, p[:3]) for c, n, p in sorted(found, key=lambda row: (-separated[row[0]], str(row[0]))))
