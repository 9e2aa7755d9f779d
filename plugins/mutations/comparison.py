"""Scores of mutation effects beside published predictors on identical rows, with intervals over structures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from protgraph.bench.mutation_rows import MutationRows

__all__ = ["MutationScores", "antisymmetry", "mutation_scores", "mutation_table"]

_FEWEST = 10  # rows of a structure for its own correlation
_DRAWS, _LEVEL = 1000, 95


def pearson_of(x: np.ndarray, y: np.ndarray) -> float:
    """Return the Pearson correlation; NaN if a variance is 0."""
    x, y = x - x.mean(), y - y.mean()
    under = np.sqrt((x @ x) * (y @ y))
    return float(x @ y / under) if under > 0 else float("nan")


@dataclass(frozen=True)
class MutationScores:
    """Scores of one method on N rows.

    Parameters
    ----------
    rows, structures : int
    pearson, spearman, rmse : float
        Over all rows; ``rmse`` is NaN for scores without unit.
    low, high : float
        95 % bootstrap interval of ``pearson`` over structures.
    within : mapping of str to float
        Spearman correlation within each structure of ten rows or more; NaN if the predictions are equal.
    per_structure, within_low, within_high : float
        Mean of ``within``, and its 95 % bootstrap interval over these structures; NaN without one.
    """

    rows: int
    structures: int
    pearson: float
    spearman: float
    rmse: float
    low: float
    high: float
    within: Mapping[str, float]
    per_structure: float
    within_low: float
    within_high: float


def mutation_scores(rows: MutationRows, method: str, mask: np.ndarray, *, seed: int = 0) -> MutationScores:
    """Return the scores of a method on the rows of a mask ``(N,)``."""
    y, p, structure = rows.value[mask], rows.predictions[method][mask], rows.structure[mask]
    names, group = np.unique(structure, return_inverse=True)
    members = [np.flatnonzero(group == g) for g in range(len(names))]
    random = np.random.default_rng(seed)
    draws: list[float] = []
    for _ in range(_DRAWS):
        chosen = np.concatenate([members[g] for g in random.integers(0, len(names), len(names))])
        draws.append(pearson_of(p[chosen], y[chosen]))
    within = {
        str(name): pearson_of(rankdata(p[m]), rankdata(y[m]))
        for name, m in zip(names, members, strict=True)
        if len(m) >= _FEWEST
    }
    return MutationScores(
        len(y),
        len(names),
        pearson_of(p, y),
        pearson_of(rankdata(p), rankdata(y)),
        float(np.sqrt(np.mean((p - y) ** 2))) if rows.units[method] == rows.unit != "" else np.nan,
        *_interval(draws),
        within,
        *_mean_and_interval(within.values(), seed),
    )


def _interval(draws: Sequence[float]) -> tuple[float, float]:
    low, high = np.nanpercentile(draws, [(100 - _LEVEL) / 2, (100 + _LEVEL) / 2])
    return float(low), float(high)


def _mean_and_interval(values: Iterable[float], seed: int) -> tuple[float, float, float]:
    """Return the mean of values that are not NaN, and its bootstrap interval; NaN without any."""
    known = np.array([value for value in values if np.isfinite(value)])
    if not len(known):
        return np.nan, np.nan, np.nan
    chosen = np.random.default_rng(seed).integers(0, len(known), (_DRAWS, len(known)))
    return float(known.mean()), *_interval(known[chosen].mean(1))


def antisymmetry(direct: MutationRows, reverse: MutationRows, method: str) -> tuple[float, float, int]:
    """Return ``r(direct, reverse)``, the bias ``mean(direct + reverse) / 2``, and the number of pairs.

    Pairs have the same row of the source; ideal are −1 and 0. NaN for a method without values of the reverse.
    """
    opposite = reverse.predictions.get(method, np.full(len(reverse.row), np.nan))
    back = {row.removesuffix(", reverse"): p for row, p in zip(reverse.row, opposite, strict=True)}
    pairs = [(p, back[row]) for row, p in zip(direct.row, direct.predictions[method], strict=True) if row in back]
    x = np.array(pairs).reshape(-1, 2)
    x = x[np.isfinite(x).all(1)]
    if not len(x):
        return np.nan, np.nan, 0
    return pearson_of(x[:, 0], x[:, 1]), float(x.sum(1).mean() / 2), len(x)


def mutation_table(splits: Sequence[MutationRows]) -> str:
    """Return Markdown tables of each split, best correlation first; all methods of a table on the same rows.

    The first table of a split has the methods that predict at least 90 % of its rows, on the rows that all of these
    predict. If there are others, a second table has all methods on the rows that all predict.
    """
    parts = []
    for rows in splits:
        most = rows.with_most_rows()
        parts.append(_one_table(rows, most, splits))
        if len(most) < len(rows.predictions):
            few = ", ".join(name for name in rows.predictions if name not in most)
            note = f"On the rows that {few} predict too:"
            parts.append(f"{note}\n\n{_one_table(rows, list(rows.predictions), splits)}")
    return "\n\n".join(parts) + "\n"


def _one_table(rows: MutationRows, methods: Sequence[str], splits: Sequence[MutationRows]) -> str:
    mask = rows.common(methods)
    found = {method: mutation_scores(rows, method, mask) for method in methods}
    first = next(iter(found.values()))
    title = f"### {rows.name}: {first.rows} of {len(mask)} rows, {first.structures} structures"
    title += f", {len(first.within)} with ten rows or more"
    if not rows.unit:
        return "\n".join([title, "", *_lines_by_structure(found)])
    other = _other_direction(rows, splits)
    head = ["method", "Pearson [95 %]", "Spearman", "RMSE", "Spearman per structure [95 %]"]
    head += ["r direct/reverse", "bias"] if other is not None else []
    lines = [title, "", "| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for method, s in sorted(found.items(), key=lambda item: -np.nan_to_num(item[1].pearson)):
        cells = [method, _with_interval(s.pearson, s.low, s.high), f"{s.spearman:.3f}"]
        cells += [_number(s.rmse, 2), _with_interval(s.per_structure, s.within_low, s.within_high)]
        if other is not None:
            r, bias, _ = antisymmetry(rows, other, method)
            cells += [_number(r, 3), _number(bias, 2)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _lines_by_structure(found: Mapping[str, MutationScores]) -> list[str]:
    """Return a table with the Spearman correlation within each structure, whose values have no common unit."""
    names = list(next(iter(found.values())).within)
    head = ["Spearman", "mean [95 %]", *names]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for method, s in sorted(found.items(), key=lambda item: -np.nan_to_num(item[1].per_structure)):
        cells = [method, _with_interval(s.per_structure, s.within_low, s.within_high)]
        lines.append("| " + " | ".join([*cells, *(_number(s.within[name], 3) for name in names)]) + " |")
    return lines


def _other_direction(rows: MutationRows, splits: Sequence[MutationRows]) -> MutationRows | None:
    name = rows.name.removesuffix("direct") + "reverse"
    return next((s for s in splits if rows.name.endswith("direct") and s.name == name), None)


def _with_interval(value: float, low: float, high: float) -> str:
    return "–" if np.isnan(value) else f"{value:.3f} [{low:.3f}, {high:.3f}]"


def _number(value: float, digits: int) -> str:
    return "–" if np.isnan(value) else f"{value:.{digits}f}"
