"""Measured values of variants beside own and published predictions, on identical rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from protgraph.bench.mutation_cache import ScoreCache
from protgraph.data.datasets.mutation_dataset import MutationDataset
from protgraph.design.mutation import BindingScorer, is_binding_model
from protgraph.errors import DatasetError
from protgraph.structure.mutation import DDG_UNIT, MutationScorer

__all__ = ["MutationRows", "mutation_rows"]

_KEY = ("id", "structure", "mutations", "split", "row", "value")
_COVERED = 0.9  # least share of the rows that a method of the main table predicts


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
        return np.isfinite(np.stack([self.value, *(self.predictions[name] for name in chosen)])).all(0)

    def with_most_rows(self) -> list[str]:
        """Return the methods that predict at least 90 % of the rows."""
        return [name for name, p in self.predictions.items() if np.isfinite(p).mean() >= _COVERED]


def mutation_rows(
    dataset: MutationDataset,
    split: str,
    scorers: Sequence[MutationScorer] = (),
    report: Callable[[str], None] | None = None,
    *,
    cache: ScoreCache | None = None,
) -> MutationRows:
    """Score the variants of a split, beside the published predictions that the dataset has.

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
    place = {name: i for i, name in enumerate(dataset.table["id"].to_pylist())}
    order = [place[example.id] for example in examples]
    column = {name: dataset.table[name].to_numpy(zero_copy_only=False)[order] for name in dataset.table.column_names}
    published = {n: np.asarray(v, np.float64) for n, v in column.items() if n not in _KEY}
    published = {n: v for n, v in published.items() if np.isfinite(v).any()}
    own: dict[str, np.ndarray] = {}
    unit = dataset.target(task).unit
    units = dict.fromkeys(published, unit)
    for structure in dict.fromkeys(column["structure"].tolist()):
        rows = np.flatnonzero(column["structure"] == structure)
        residues, source = dataset.read(examples[rows[0]]), examples[rows[0]].path
        variants = [dataset.mutations(examples[i]) for i in rows]
        partners = dataset.partners(structure)
        for scorer in scorers:
            used = [] if is_binding_model(scorer) else [(scorer, None)]
            used += [] if partners is None else [(BindingScorer(scorer, partners), partners)]
            for one, sides in used:
                units[one.name] = one.unit
                values = own.setdefault(one.name, np.full(len(examples), np.nan))
                values[rows] = dataset.sign * cache.score(scorer, residues, variants, source=source, partners=sides)
        if report is not None:
            report(structure)
    value = np.asarray(column["value"], np.float64)
    structures, places = column["structure"].astype(str), column["row"].astype(str)
    shared = unit if unit == DDG_UNIT else ""
    return MutationRows(f"{dataset.name} {split}", structures, places, value, own | published, units, shared)
