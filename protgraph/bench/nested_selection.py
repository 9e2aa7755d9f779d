"""Risk assessment with inner model selection: 10 test folds, a holdout in each for the choice of the candidate.

The protocol of Errica et al. 2020, arXiv:1912.09893, sec. 4: in each of ten folds, every candidate is trained once and
the one with the best accuracy on a holdout of 10 % of the training graphs is chosen; it is trained three more times
with other seeds, and the mean of the three test accuracies is the score of the fold.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, pstdev

from protgraph.bench.graph_candidates import GraphCandidate
from protgraph.bench.nested_folds import NestedFold
from protgraph.data.cache_key import digest
from protgraph.data.datasets.dataset import Dataset
from protgraph.data.datasets.dataset_view import resplit
from protgraph.errors import OptionError
from protgraph.file_io import append_line, read_json_lines
from protgraph.train.fit import fit

__all__ = ["NestedResult", "NestedRun", "select_and_assess"]

RUNS = 3


@dataclass(frozen=True)
class NestedRun:
    """One training run.

    Parameters
    ----------
    key : str
        Digest of the candidate, the data and the fold.
    fold : int
        From 0.
    candidate : str
    seed : int
        0: run of the selection; 1 and more: runs that are tested.
    val : float
        Accuracy on the holdout.
    test : float, optional
        Accuracy on the test fold; None in the selection, which does not read it.
    epoch : int
        Chosen epoch, from 1.
    seconds : float
    """

    key: str
    fold: int
    candidate: str
    seed: int
    val: float
    test: float | None
    epoch: int
    seconds: float


@dataclass(frozen=True)
class NestedResult:
    """Result of :func:`select_and_assess`.

    Parameters
    ----------
    chosen : tuple of str
        Candidate of each fold.
    folds : tuple of float
        Mean test accuracy of each fold.
    runs : tuple of NestedRun
    """

    chosen: tuple[str, ...]
    folds: tuple[float, ...]
    runs: tuple[NestedRun, ...]

    @property
    def mean(self) -> float:
        """Mean test accuracy over folds."""
        return fmean(self.folds)

    @property
    def sd(self) -> float:
        """Standard deviation over folds; of the folds as a population, as in the paper."""
        return pstdev(self.folds)

    def __str__(self) -> str:
        return f"{100 * self.mean:.1f} ± {100 * self.sd:.1f}"


def select_and_assess(
    candidates: Sequence[GraphCandidate],
    dataset: Dataset,
    task: str,
    folds: Sequence[NestedFold],
    *,
    runs: int = RUNS,
    rows: str | Path | None = None,
    on_run: Callable[[NestedRun], None] | None = None,
) -> NestedResult:
    """Choose a candidate in each fold on its holdout, and test it on the fold.

    Parameters
    ----------
    candidates : sequence of GraphCandidate
        Ties of the validation accuracy are decided for the first.
    dataset : Dataset
        Its splits are not used.
    task : str
        Classification of graphs.
    folds : sequence of NestedFold
        See :func:`protgraph.bench.nested_folds.stratified_folds` and :func:`protgraph.bench.nested_folds.read_folds`.
    runs : int
        Tested runs per fold.
    rows : str or Path, optional
        File of JSON lines, one per run. Runs that it has are not repeated.
    on_run : callable, optional
        Called with each run, also those of the file.

    Raises
    ------
    OptionError
        ``runs`` is not positive, or there are no candidates.
    """
    if runs < 1 or not candidates:
        raise OptionError(f"select_and_assess: runs = {runs}, {len(candidates)} candidates. Allowed: at least 1 each.")
    names = [example.id for example in dataset.examples(task)]
    finished = _read(rows)
    found: list[NestedRun] = []

    def train(number: int, candidate: GraphCandidate, seed: int) -> NestedRun:
        fold = folds[number]
        splits = fold.splits(names)
        if seed == 0:  # the selection does not see the test fold
            splits = {name: split for name, split in splits.items() if split != "test"}
        key = _key(candidate, dataset, task, splits, seed)
        run = finished.get(key)
        if run is None:
            run = _train(key, number, candidate, seed, resplit(dataset, task, splits, f"fold {number}"), task)
            if rows is not None:
                append_line(Path(rows), json.dumps(asdict(run)))
        found.append(run)
        if on_run is not None:
            on_run(run)
        return run

    chosen, scores = [], []
    for number in range(len(folds)):
        values = [train(number, candidate, 0).val for candidate in candidates]
        best = candidates[values.index(max(values))]
        chosen.append(best.name)
        scores.append(fmean(train(number, best, seed).test for seed in range(1, runs + 1)))
    return NestedResult(tuple(chosen), tuple(scores), tuple(found))


def _train(key: str, fold: int, candidate: GraphCandidate, seed: int, dataset: Dataset, task: str) -> NestedRun:
    result = fit(candidate.model, dataset, task, config=replace(candidate.config, seed=seed))
    test = result.metrics.get("test", {}).get("accuracy")
    val = result.metrics["val"]["accuracy"]
    return NestedRun(key, fold, candidate.name, seed, val, test, result.best_epoch, result.seconds)


def _key(candidate: GraphCandidate, dataset: Dataset, task: str, splits: Mapping[str, str], seed: int) -> str:
    content = [candidate.model.to_dict(), candidate.config.to_dict() | {"seed": seed}, dataset.version, task]
    return digest([*content, sorted(splits.items())])


def _read(path: str | Path | None) -> dict[str, NestedRun]:
    """Return the runs of a file by key; an unfinished last line is ignored, its run is done again."""
    names = set(NestedRun.__dataclass_fields__)
    lines = [] if path is None else read_json_lines(path)
    return {data["key"]: NestedRun(**data) for data in lines if set(data) == names}
