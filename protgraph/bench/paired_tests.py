"""Tests of models on the same proteins: sign permutations, Holm's correction, and Nemenyi's critical difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["PERMUTATIONS", "RankComparison", "compare_ranks", "holm", "sign_permutation_tests"]

#: Random sign patterns; fewer proteins than log₂ of this have all of theirs enumerated.
PERMUTATIONS = 9999
_LEVEL = 0.05
#: Numbers of a batch of sign patterns in memory.
_AT_ONCE = 1 << 21


def sign_permutation_tests(differences: np.ndarray, *, seed: int = 0) -> list[float]:
    """Compute the two-sided p-value of each mean difference over paired proteins.

    Under the hypothesis of no difference the sign of each protein's difference is as likely + as −. The p-value is the
    fraction of sign patterns with at least the observed mean: of all patterns for up to 13 proteins, otherwise of 9,999
    random ones with one added to both counts (Phipson & Smyth 2010). Rows with the same proteins share the patterns.

    ``differences``: ``(M, P)``, a row per pair of models; proteins with NaN are left out of their row. ``seed``: seed
    of the random patterns.

    Examples
    --------
    >>> sign_permutation_tests(np.array([[1.0, 2.0, 3.0]]))  # 2 of 8 patterns
    [0.25]

    References
    ----------
    Phipson & Smyth 2010, "Permutation p-values should never be zero", doi:10.2202/1544-6115.1585.
    """
    from scipy.stats import permutation_test

    defined = ~np.isnan(differences)
    p_values = np.where(defined.any(1), 1.0, np.nan)
    tested = (defined.sum(1) > 1) & (np.nan_to_num(differences) != 0).any(1)
    for proteins in np.unique(defined[tested], axis=0):
        rows = np.flatnonzero(tested & (defined == proteins).all(1))
        result = permutation_test(
            (differences[rows][:, proteins],),
            lambda x, axis: np.mean(x, axis=axis),
            permutation_type="samples",
            n_resamples=PERMUTATIONS,
            batch=max(1, _AT_ONCE // (len(rows) * int(proteins.sum()))),
            random_state=np.random.default_rng(seed),
            axis=1,
        )
        p_values[rows] = result.pvalue
    return p_values.tolist()


def holm(values: Sequence[float]) -> list[float]:
    """Adjust p-values for their number by Holm's step-down method; NaN stays NaN and is not counted.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]

    References
    ----------
    Holm 1979, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6, 65–70.
    """
    p = np.array(values, dtype=float)
    rows = np.flatnonzero(~np.isnan(p))
    order = rows[p[rows].argsort(kind="stable")]
    factors = np.arange(len(order), 0, -1)
    p[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return p.tolist()


@dataclass(frozen=True)
class RankComparison:
    """Friedman test and Nemenyi's critical difference of models over proteins.

    ``ranks``: mean rank of each model over proteins; 1 is the best. ``proteins``: proteins for which every model has a
    value. ``p_value``: Friedman test: all models have the same expected rank. ``critical_difference``: difference of
    mean ranks that is significant at the 5 % level for all pairs together.
    """

    models: tuple[str, ...]
    ranks: tuple[float, ...]
    proteins: int
    p_value: float
    critical_difference: float

    def groups(self) -> list[tuple[str, ...]]:
        """Return the largest sets of models, best first, whose mean ranks differ by less than the critical one."""
        order = sorted(range(len(self.models)), key=lambda i: self.ranks[i])
        groups, last = [], -1
        for a, i in enumerate(order):
            b = max(k for k, j in enumerate(order) if self.ranks[j] - self.ranks[i] < self.critical_difference)
            if b > a and b > last:
                groups.append(tuple(self.models[j] for j in order[a : b + 1]))
                last = b
        return groups


def compare_ranks(models: Sequence[str], values: np.ndarray, *, mode: str = "max") -> RankComparison | None:
    """Rank models within each protein, and compare the mean ranks; None for fewer than three models or two proteins.

    ``models``: M names. ``values``: ``(M, P)``, a metric of each model on each protein. Models with NaN for all
    proteins are left out, then proteins with NaN. ``mode``: better direction.

    References
    ----------
    Demšar 2006, "Statistical comparisons of classifiers over multiple data sets", JMLR 7, 1–30, section 3.2.2.
    """
    from scipy.stats import friedmanchisquare, rankdata, studentized_range

    has_value = ~np.isnan(values).all(1)
    models = [model for model, is_ranked in zip(models, has_value, strict=True) if is_ranked]
    values = values[has_value]
    values = values[:, ~np.isnan(values).any(0)]
    m, proteins = values.shape
    if m < 3 or proteins < 2:
        return None
    ranks = rankdata(-values if mode == "max" else values, axis=0).mean(1)
    differs = bool((values != values[:1]).any())
    p = float(friedmanchisquare(*values).pvalue) if differs else 1.0
    q = float(studentized_range.ppf(1 - _LEVEL, m, np.inf)) / math.sqrt(2)
    return RankComparison(
        tuple(models), tuple(ranks.tolist()), proteins, p, q * math.sqrt(m * (m + 1) / (6 * proteins))
    )
