"""Measured values of variants beside predictions of models and published ones, on identical rows, with intervals."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from protgraph_plugins.mutations.binding_scorer import BindingScorer, is_binding_model
from protgraph_plugins.mutations.dataset import MutationDataset
from protgraph_plugins.mutations.mutation import Mutation
from protgraph_plugins.mutations.scorer import DDG_UNIT, MutationScorer
from scipy.stats import rankdata
from torch import nn

import protgraph as pg
from protgraph.data.datasets import Example
from protgraph.errors import DatasetError
from protgraph.file_io import append_line, file_sha256, read_json_lines
from protgraph.structure import Residues

__all__ = [
    "MutationRows",
    "MutationScores",
    "ScoreCache",
    "antisymmetry",
    "mutation_rows",
    "mutation_scores",
    "mutation_table",
    "scorer_digest",
]

_NOT_PREDICTIONS = ("id", "structure", "mutations", "split", "row", "value")
COVERAGE = 0.9  # least share of the rows that a method of the main table predicts
FLOOR = "mean of train, by pair of types"
_FEWEST = 10  # rows of a structure for its own correlation
_DRAWS, _LEVEL = 1000, 95


# --- rows ----------------------------------------------------------------------------------------------------------


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
    unit : str
        Unit of the values; "" if every structure has its own scale.
    """

    name: str
    structure: np.ndarray
    row: np.ndarray
    value: np.ndarray
    predictions: Mapping[str, np.ndarray]
    units: Mapping[str, str]
    unit: str = DDG_UNIT

    def common(self, methods: Sequence[str] | None = None) -> np.ndarray:
        """Return a mask ``(N,)`` of the rows that every method, or each of these, predicts."""
        chosen = self.predictions if methods is None else methods
        is_common = np.isfinite(self.value)
        for name in chosen:
            is_common &= np.isfinite(self.predictions[name])
        return is_common

    def with_most_rows(self, coverage: float = COVERAGE) -> list[str]:
        """Return the methods that predict at least this share of the rows."""
        return [name for name, p in self.predictions.items() if np.isfinite(p).mean() >= coverage]


def mutation_rows(
    dataset: MutationDataset,
    split: str,
    scorers: Sequence[MutationScorer] = (),
    report: Callable[[str], None] | None = None,
    *,
    cache: ScoreCache | None = None,
) -> MutationRows:
    """Score the variants of a split, beside the published predictions that the dataset has.

    Sets of ΔΔG with a training split have a trivial method, too: the mean of train for the wild type and the mutant.
    All variants of a structure are scored in one call. Complexes whose partners the dataset has are scored twice: the
    score of the scorer itself, and that of the complex minus its partners (:class:`BindingScorer`). Models of binding
    score such complexes once, and no other structures.

    Parameters
    ----------
    dataset : MutationDataset
        Prepared.
    split : str
    scorers : sequence of MutationScorer
    report : callable, optional
        Called with the name of each finished structure.
    cache : ScoreCache, optional
        Scores of finished structures of an earlier run.

    Raises
    ------
    DatasetError
        The dataset does not have the split.
    """
    (task,) = dataset.tasks()
    examples = dataset.examples(task, split)
    if not examples:
        raise DatasetError(
            f"dataset {dataset.name!r} has no split {split!r}. Allowed: {', '.join(dataset.splits(task))}."
        )
    cache = ScoreCache() if cache is None else cache
    columns = _columns_in_order(dataset, examples)
    published = _published_predictions(columns)
    unit = dataset.target(task).unit
    if unit == DDG_UNIT and "train" in dataset.splits(task):
        published[FLOOR] = _means_of_pairs(dataset, task, examples)
    units = dict.fromkeys(published, unit)

    computed: dict[str, np.ndarray] = {}
    for structure in dict.fromkeys(columns["structure"].tolist()):
        rows = np.flatnonzero(columns["structure"] == structure)
        first = examples[rows[0]]
        residues = dataset.read(first)
        variants = [dataset.mutations(examples[row]) for row in rows]
        for method in _methods(scorers, dataset.partners(structure)):
            scores = cache.score(method.scorer, residues, variants, source=first.path, partners=method.partners)
            values = computed.setdefault(method.name, np.full(len(examples), np.nan))
            values[rows] = dataset.sign * scores
            units[method.name] = method.scorer.unit
        if report is not None:
            report(structure)
    return MutationRows(
        name=f"{dataset.name} {split}",
        structure=columns["structure"].astype(str),
        row=columns["row"].astype(str),
        value=columns["value"].astype(np.float64),
        predictions=computed | published,
        units=units,
        unit=unit if unit == DDG_UNIT else "",
    )


def _columns_in_order(dataset: MutationDataset, examples: Sequence[Example]) -> dict[str, np.ndarray]:
    """Return the columns of the dataset's table, with one row for each example."""
    row_of_id = {name: row for row, name in enumerate(dataset.table["id"].to_pylist())}
    order = [row_of_id[example.id] for example in examples]
    return {name: dataset.table[name].to_numpy(zero_copy_only=False)[order] for name in dataset.table.column_names}


def _published_predictions(columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the columns of published methods that predict a row or more."""
    published = {}
    for name, column in columns.items():
        if name in _NOT_PREDICTIONS:
            continue
        values = column.astype(np.float64)
        if np.isfinite(values).any():
            published[name] = values
    return published


class _Method(NamedTuple):
    """A scorer, and the partners whose binding it scores; None for the score of the scorer itself."""

    name: str
    scorer: MutationScorer
    partners: Sequence[Sequence[str]] | None


def _methods(scorers: Sequence[MutationScorer], partners: Sequence[Sequence[str]] | None) -> Iterator[_Method]:
    """Yield the methods that score a structure: models of binding need partners, the others are scored without, too."""
    for scorer in scorers:
        if not is_binding_model(scorer):
            yield _Method(scorer.name, scorer, None)
        if partners is not None:
            yield _Method(BindingScorer(scorer, partners).name, scorer, partners)


def _means_of_pairs(dataset: MutationDataset, task: str, examples: Sequence[Example]) -> np.ndarray:
    """Return a trivial prediction ``(N,)``: the mean of train for the types of each mutation, added over mutations.

    Only single mutations of train count; a pair that is not among them has the mean of all.
    """
    # Values of train, by wild type and mutant.
    measured: dict[tuple[str, str], list[float]] = {}
    for example in dataset.examples(task, "train"):
        mutations = dataset.mutations(example)
        if len(mutations) == 1:
            pair = (mutations[0].wild_type, mutations[0].mutant)
            measured.setdefault(pair, []).append(float(dataset.labels(task, example).value[0]))
    mean = float(np.mean(list(itertools.chain.from_iterable(measured.values()))))
    mean_of_pair = {pair: float(np.mean(values)) for pair, values in measured.items()}

    predictions = []
    for example in examples:
        means = [mean_of_pair.get((m.wild_type, m.mutant), mean) for m in dataset.mutations(example)]
        predictions.append(sum(means))
    return np.array(predictions, np.float64)


# --- scores of finished structures ---------------------------------------------------------------------------------


class ScoreCache:
    """Scores of variants by scorer and structure, in a file of JSON lines, so that an interrupted run resumes.

    Parameters
    ----------
    path : str or Path, optional
        File; a line is added when a structure is finished. None: nothing is kept.

    Notes
    -----
    A line is found again only for the same structure file, variants, options and weights of a scorer, and versions of
    protgraph and torch.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else Path(path)
        rows = [] if self.path is None else read_json_lines(self.path)
        self._known = {row["key"]: row["scores"] for row in rows if {"key", "scores"} <= row.keys()}
        self._scorers: dict[int, str] = {}  # by identity: hashing the weights takes longer than most structures
        self.found = 0

    def score(
        self,
        scorer: MutationScorer,
        residues: Residues,
        variants: Sequence[Sequence[Mutation]],
        *,
        source: Path | None = None,
        partners: Sequence[Sequence[str]] | None = None,
    ) -> np.ndarray:
        """Return the scores ``(V,)`` of variants of a structure, from the file if it has them.

        Parameters
        ----------
        scorer : MutationScorer
        residues : Residues
        variants : sequence of sequence of Mutation
        source : Path, optional
            Structure file of ``residues``; without it, nothing is kept.
        partners : sequence of sequence of str, optional
            The score is that of the complex minus that of these partners.
        """
        used = scorer if partners is None else BindingScorer(scorer, partners)
        if self.path is None or source is None:
            return used.score(residues, variants)
        if id(scorer) not in self._scorers:
            self._scorers[id(scorer)] = scorer_digest(scorer)
        structure = file_sha256(source)
        texts = [",".join(map(str, variant)) for variant in variants]
        key = _digest(self._scorers[id(scorer)], structure, texts, partners, pg.__version__, torch.__version__)
        if key in self._known:
            self.found += 1
            return np.array(self._known[key], np.float64)
        scores = used.score(residues, variants)
        values = [float(x) if np.isfinite(x) else None for x in scores]
        append_line(self.path, json.dumps({"key": key, "scorer": used.name, "scores": values}))
        return scores


def scorer_digest(scorer: object) -> str:
    """Return the digest of a scorer: its class, its options, and the weights of its models."""
    content: list[object] = [type(scorer).__module__, type(scorer).__qualname__]
    for name, value in sorted(vars(scorer).items()):
        if isinstance(value, str | int | float | bool):
            content.append([name, value])
        for item in value if isinstance(value, list | tuple) else [value]:
            if isinstance(item, nn.Module):
                content.append(_weights_digest(item))
            elif hasattr(item, "score") and not isinstance(item, type):
                content.append(scorer_digest(item))
    return _digest(*content)


def _digest(*content: object) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _weights_digest(module: nn.Module) -> str:
    sha256 = hashlib.sha256()
    for name, value in sorted(module.state_dict().items()):
        sha256.update(name.encode())
        if isinstance(value, torch.Tensor):
            sha256.update(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return sha256.hexdigest()


# --- correlations and tables ---------------------------------------------------------------------------------------


def pearson_of(x: np.ndarray, y: np.ndarray) -> float:
    """Return the Pearson correlation; NaN if a variance is 0."""
    x, y = x - x.mean(), y - y.mean()
    under = np.sqrt((x @ x) * (y @ y))
    return float(x @ y / under) if under > 0 else float("nan")


def spearman_of(x: np.ndarray, y: np.ndarray) -> float:
    """Return the Spearman correlation; NaN if a variance is 0."""
    return pearson_of(rankdata(x), rankdata(y))


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
    y = rows.value[mask]
    p = rows.predictions[method][mask]
    structure = rows.structure[mask]
    names, group = np.unique(structure, return_inverse=True)
    members = [np.flatnonzero(group == g) for g in range(len(names))]
    # bootstrap over structures, since variants of one structure are not independent
    random = np.random.default_rng(seed)
    draws: list[float] = []
    for _ in range(_DRAWS):
        chosen = np.concatenate([members[g] for g in random.integers(0, len(names), len(names))])
        draws.append(pearson_of(p[chosen], y[chosen]))
    low, high = _interval(draws)
    within = {}
    for name, m in zip(names, members, strict=True):
        if len(m) >= _FEWEST:
            within[str(name)] = spearman_of(p[m], y[m])
    per_structure, within_low, within_high = _mean_and_interval(within.values(), seed)
    has_unit = rows.unit != "" and rows.units[method] == rows.unit
    return MutationScores(
        rows=len(y),
        structures=len(names),
        pearson=pearson_of(p, y),
        spearman=spearman_of(p, y),
        rmse=float(np.sqrt(np.mean((p - y) ** 2))) if has_unit else np.nan,
        low=low,
        high=high,
        within=within,
        per_structure=per_structure,
        within_low=within_low,
        within_high=within_high,
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
    pairs = []
    for row, p in zip(direct.row, direct.predictions[method], strict=True):
        if row in back:
            pairs.append((p, back[row]))
    values = np.array(pairs).reshape(-1, 2)
    values = values[np.isfinite(values).all(1)]
    if not len(values):
        return np.nan, np.nan, 0
    bias = float(values.sum(1).mean() / 2)
    return pearson_of(values[:, 0], values[:, 1]), bias, len(values)


def mutation_table(splits: Sequence[MutationRows], coverage: float = COVERAGE) -> str:
    """Return Markdown tables of each split, best correlation first; all methods of a table on the same rows.

    The first table of a split has the methods that predict at least the share ``coverage`` of its rows, on the rows
    that all of these predict. If there are others, a second table has all methods on the rows that all predict.
    """
    tables = []
    for rows in splits:
        most = rows.with_most_rows(coverage)
        tables.append(_one_table(rows, most, splits))
        if len(most) < len(rows.predictions):
            few = ", ".join(name for name in rows.predictions if name not in most)
            note = f"On the rows that {few} predict too:"
            tables.append(f"{note}\n\n{_one_table(rows, list(rows.predictions), splits)}")
    return "\n\n".join(tables) + "\n"


def _one_table(rows: MutationRows, methods: Sequence[str], splits: Sequence[MutationRows]) -> str:
    mask = rows.common(methods)
    scores = {method: mutation_scores(rows, method, mask) for method in methods}
    first = next(iter(scores.values()))
    title = f"### {rows.name}: {first.rows} of {len(mask)} rows, {first.structures} structures"
    title += f", {len(first.within)} with ten rows or more"
    if not rows.unit:
        return "\n".join([title, "", *_lines_by_structure(scores)])
    other = _other_direction(rows, splits)
    head = ["method", "Pearson [95 %]", "Spearman", "RMSE", "Spearman per structure [95 %]"]
    if other is not None:
        head += ["r direct/reverse", "bias"]
    lines = _head_lines(head)
    for method, s in sorted(scores.items(), key=lambda item: -np.nan_to_num(item[1].pearson)):
        cells = [method, _with_interval(s.pearson, s.low, s.high), f"{s.spearman:.3f}"]
        cells += [_number(s.rmse, 2), _with_interval(s.per_structure, s.within_low, s.within_high)]
        if other is not None:
            r, bias, _ = antisymmetry(rows, other, method)
            cells += [_number(r, 3), _number(bias, 2)]
        lines.append(_line(cells))
    return "\n".join([title, "", *lines])


def _lines_by_structure(scores: Mapping[str, MutationScores]) -> list[str]:
    """Return a table with the Spearman correlation within each structure, whose values have no common unit."""
    names = list(next(iter(scores.values())).within)
    lines = _head_lines(["Spearman", "mean [95 %]", *names])
    for method, s in sorted(scores.items(), key=lambda item: -np.nan_to_num(item[1].per_structure)):
        mean = _with_interval(s.per_structure, s.within_low, s.within_high)
        lines.append(_line([method, mean, *(_number(s.within[name], 3) for name in names)]))
    return lines


def _head_lines(names: Sequence[str]) -> list[str]:
    return [_line(names), "|---" * len(names) + "|"]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _other_direction(rows: MutationRows, splits: Sequence[MutationRows]) -> MutationRows | None:
    name = rows.name.removesuffix("direct") + "reverse"
    return next((s for s in splits if rows.name.endswith("direct") and s.name == name), None)


def _with_interval(value: float, low: float, high: float) -> str:
    return "–" if np.isnan(value) else f"{value:.3f} [{low:.3f}, {high:.3f}]"


def _number(value: float, digits: int) -> str:
    return "–" if np.isnan(value) else f"{value:.{digits}f}"
