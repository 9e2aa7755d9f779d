"""Scores of mutation effects beside published predictors on identical rows, with intervals over structures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from protgraph.data.datasets.mutation_dataset import MutationDataset
from protgraph.errors import DatasetError
from protgraph.structure.mutation import DDG_UNIT, MutationScorer

__all__ = ["MutationRows", "MutationScores", "antisymmetry", "mutation_rows", "mutation_scores", "mutation_table"]

_KEY = ("id", "structure", "mutations", "split", "row", "value")
_FEWEST = 10  # rows of a structure for its own correlation
_DRAWS, _LEVEL = 1000, 95


def pearson_of(x: np.ndarray, y: np.ndarray) -> float:
    """Return the Pearson correlation; NaN if a variance is 0."""
    x, y = x - x.mean(), y - y.mean()
    under = np.sqrt((x @ x) * (y @ y))
    return float(x @ y / under) if under > 0 else float("nan")


@dataclass(frozen=True, eq=False)
class MutationRows:
    """Measured and predicted values of one split.

    Parameters
    ----------
    name : str
        Dataset and split.
    structure, row : ndarray of str
        ``(N,)``; ``row`` is the place in the source.
    value : ndarray
        ``(N,)`` measured.
    predictions : mapping of str to ndarray
        Method → ``(N,)`` in the sign of the values; NaN where the method has none.
    units : mapping of str to str
        Method → unit; "" for scores without one.
    """

    name: str
    structure: np.ndarray
    row: np.ndarray
    value: np.ndarray
    predictions: Mapping[str, np.ndarray]
    units: Mapping[str, str]

    def common(self) -> np.ndarray:
        """Return a mask ``(N,)`` of the rows that every method predicts."""
        return np.isfinite(np.stack([self.value, *self.predictions.values()])).all(0)


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
    per_structure : float
        Mean Spearman correlation within structures of ten rows or more; NaN without one.
    """

    rows: int
    structures: int
    pearson: float
    spearman: float
    rmse: float
    low: float
    high: float
    per_structure: float


def mutation_rows(
    dataset: MutationDataset,
    split: str,
    scorers: Sequence[MutationScorer] = (),
    report: Callable[[str], None] | None = None,
) -> MutationRows:
    """Score the variants of a split, beside the published predictions that the dataset has.

    Parameters
    ----------
    dataset : MutationDataset
        Prepared.
    split : str
    scorers : sequence of MutationScorer
    report : callable, optional
        Called with the name of each finished structure.
    """
    (task,) = dataset.tasks()
    examples = dataset.examples(task, split)
    if not examples:
        raise DatasetError(
            f"dataset {dataset.name!r} has no split {split!r}. Allowed: {', '.join(dataset.splits(task))}."
        )
    place = {name: i for i, name in enumerate(dataset.table["id"].to_pylist())}
    order = [place[example.id] for example in examples]
    column = {name: dataset.table[name].to_numpy(zero_copy_only=False)[order] for name in dataset.table.column_names}
    published = {n: np.asarray(v, np.float64) for n, v in column.items() if n not in _KEY}
    published = {n: v for n, v in published.items() if np.isfinite(v).any()}
    own = {scorer.name: np.full(len(examples), np.nan) for scorer in scorers}
    for structure in dict.fromkeys(column["structure"].tolist()):
        rows = np.flatnonzero(column["structure"] == structure)
        residues = dataset.read(examples[rows[0]])
        variants = [dataset.mutations(examples[i]) for i in rows]
        for scorer in scorers:
            own[scorer.name][rows] = scorer.score(residues, variants)
        if report is not None:
            report(structure)
    units = dict.fromkeys(published, DDG_UNIT) | {scorer.name: scorer.unit for scorer in scorers}
    value = np.asarray(column["value"], np.float64)
    structures, places = column["structure"].astype(str), column["row"].astype(str)
    return MutationRows(f"{dataset.name} {split}", structures, places, value, own | published, units)


def mutation_scores(rows: MutationRows, method: str, mask: np.ndarray, *, seed: int = 0) -> MutationScores:
    """Return the scores of a method on the rows of a mask ``(N,)``."""
    y, p, structure = rows.value[mask], rows.predictions[method][mask], rows.structure[mask]
    names, group = np.unique(structure, return_inverse=True)
    members = [np.flatnonzero(group == g) for g in range(len(names))]
    random = np.random.default_rng(seed)
    draws = []
    for _ in range(_DRAWS):
        chosen = np.concatenate([members[g] for g in random.integers(0, len(names), len(names))])
        draws.append(pearson_of(p[chosen], y[chosen]))
    within = [pearson_of(rankdata(p[m]), rankdata(y[m])) for m in members if len(m) >= _FEWEST]
    low, high = np.nanpercentile(draws, [(100 - _LEVEL) / 2, (100 + _LEVEL) / 2])
    return MutationScores(
        len(y),
        len(names),
        pearson_of(p, y),
        pearson_of(rankdata(p), rankdata(y)),
        float(np.sqrt(np.mean((p - y) ** 2))) if rows.units[method] else np.nan,
        float(low),
        float(high),
        float(np.nanmean(within)) if np.isfinite(within).any() else np.nan,
    )


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
    """Return one Markdown table per split, best Pearson correlation first; all methods on the rows that all predict."""
    parts = []
    for rows in splits:
        mask = rows.common()
        found = {method: mutation_scores(rows, method, mask) for method in rows.predictions}
        other = _other_direction(rows, splits)
        head = ["method", "Pearson [95 %]", "Spearman", "RMSE", "per structure"]
        head += ["r direct/reverse", "bias"] if other is not None else []
        some = next(iter(found.values()))
        lines = [f"### {rows.name}: {some.rows} of {len(mask)} rows, {some.structures} structures", ""]
        lines += ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
        for method, s in sorted(found.items(), key=lambda item: -np.nan_to_num(item[1].pearson)):
            cells = [method, f"{s.pearson:.3f} [{s.low:.3f}, {s.high:.3f}]", f"{s.spearman:.3f}"]
            cells += [_number(s.rmse, 2), _number(s.per_structure, 3)]
            if other is not None:
                r, bias, _ = antisymmetry(rows, other, method)
                cells += [_number(r, 3), _number(bias, 2)]
            lines.append("| " + " | ".join(cells) + " |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _other_direction(rows: MutationRows, splits: Sequence[MutationRows]) -> MutationRows | None:
    name = rows.name.removesuffix("direct") + "reverse"
    return next((s for s in splits if rows.name.endswith("direct") and s.name == name), None)


def _number(value: float, digits: int) -> str:
    return "–" if np.isnan(value) else f"{value:.{digits}f}"
