"""Rows of a benchmark: one per model, task and seed, kept in a file that a stopped run goes on from."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protgraph.errors import DatasetError

if TYPE_CHECKING:
    from protgraph.data.datasets.dataset import Dataset

__all__ = ["BenchJob", "BenchRow", "append_row", "read_rows"]


@dataclass(frozen=True)
class BenchJob:
    """One run to do: everything that decides its numbers.

    Parameters
    ----------
    model, task : str
        Registry names; a task may be a label column of one's own.
    dataset : str
        Registry name, or the name of a folder of one's own.
    seed : int
    graph : mapping
        The model graph as plain data.
    config : mapping
        Options of ``FitConfig``, the seed left out.
    dataset_version : str
    folder, labels : str
        Where the files of a folder of one's own lie, and its table; empty otherwise. Where that is decides no number:
        ``dataset_version`` has what is in them.
    sources : mapping of str to str
        Where each component comes from, down to its code; see :func:`protgraph.bench.plan.plan_jobs`.
    """

    model: str
    task: str
    dataset: str
    seed: int
    graph: Mapping[str, Any] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    dataset_version: str = ""
    folder: str = ""
    labels: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BenchJob:
        """The inverse of :func:`dataclasses.asdict`."""
        return cls(**data)

    @property
    def key(self) -> str:
        """First 16 hexadecimal digits of the SHA-256 of all that decides its numbers.

        A row with this key need not run again.
        """
        told = {name: value for name, value in asdict(self).items() if name not in ("folder", "labels")}
        text = json.dumps(told, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def data(self) -> Dataset:
        """The dataset.

        Raises
        ------
        DatasetError
            Files or labels of one's own are no longer what they were when the job was planned.
        """
        from protgraph.train import load_dataset

        found = load_dataset(self.folder or self.dataset, labels=self.labels or None, task=self.task)
        if self.folder and found.version != self.dataset_version:
            raise DatasetError(f"files or labels of {self.folder!r} changed while the benchmark ran; start it again")
        return found


@dataclass(frozen=True)
class BenchRow:
    """What one run gave.

    Parameters
    ----------
    key : str
        Key of its :class:`BenchJob`.
    model, task, dataset : str
        As in the job.
    seed : int
    config : mapping
        Options of ``FitConfig``.
    error : str
        Empty for a run that finished; otherwise what stopped it, and nothing below is meaningful.
    metrics : mapping of str to mapping
        Split ("val", "test" and any other) → metric → value, of the epoch chosen on the validation split.
    monitor : str
        The metric that chooses the epoch.
    modes : mapping of str to str
        Whether "max" or "min" of each metric is better.
    parameters : int
        Numbers that the model learns.
    residues_per_second : float
        In training, validation left out.
    seconds : float
        The whole run: load, train, validate, test.
    peak_memory_mib : float
        Largest during the run; see :func:`protgraph.train.peak_memory.peak_memory`.
    epochs, best_epoch : int
        Epochs run, and the one that was kept, both counted from 1.
    history : sequence of mapping
        One row an epoch: "epoch", "train_loss", "val_loss" and the metrics on validation.
    confusion : mapping of str to sequence
        Split → how often each native residue type was drawn as each other, 20 × 20, or
        taken for it by models that tell all at once.
    left_out : sequence of str
        Proteins that could not be used, each with the reason.
    """

    key: str
    model: str
    task: str
    dataset: str
    seed: int
    config: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    metrics: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    monitor: str = ""
    modes: Mapping[str, str] = field(default_factory=dict)
    parameters: int = 0
    residues_per_second: float = math.nan
    seconds: float = math.nan
    peak_memory_mib: float = math.nan
    epochs: int = 0
    best_epoch: int = 0
    history: Sequence[Mapping[str, float]] = ()
    confusion: Mapping[str, Sequence[Sequence[int]]] = field(default_factory=dict)
    left_out: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "history", tuple(self.history))
        object.__setattr__(self, "left_out", tuple(self.left_out))

    @property
    def mode(self) -> str:
        """Whether "max" or "min" of the monitored metric is better."""
        return self.modes.get(self.monitor, "max")

    @property
    def score(self) -> float:
        """The monitored metric on the test split; NaN where the run failed."""
        return self.metrics.get("test", {}).get(self.monitor, math.nan)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BenchRow:
        """The inverse of :meth:`to_dict`; a null among the numbers is NaN."""
        nan = {f.name: math.nan for f in fields(cls) if f.default is math.nan and data.get(f.name) is None}
        metrics = {split: _numbers(values) for split, values in data.get("metrics", {}).items()}
        return cls(**{**data, **nan, "metrics": metrics, "history": tuple(map(_numbers, data.get("history", ())))})

    def to_dict(self) -> dict[str, Any]:
        """Plain data for strict JSON, which has no NaN and no infinity: those are null."""
        return _plain(asdict(self))

    @classmethod
    def of(cls, job: BenchJob) -> BenchRow:
        """The row of a run before it has any figures."""
        return cls(job.key, job.model, job.task, job.dataset, job.seed, dict(job.config))

    @classmethod
    def failed(cls, job: BenchJob, error: str, *, seconds: float = math.nan) -> BenchRow:
        """The row of a run that stopped with an error."""
        return replace(cls.of(job), error=error, seconds=seconds)


def append_row(path: Path, row: BenchRow) -> None:
    """Add one row to a file of JSON lines: a single write, on the disk before this returns.

    A line that an earlier, killed process left unfinished is closed first, so that it spoils only itself.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(row.to_dict(), sort_keys=True, allow_nan=False).encode() + b"\n"
    with path.open("ab+") as file:
        if file.tell() > 0:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                line = b"\n" + line
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def read_rows(path: Path) -> dict[str, BenchRow]:
    """The newest row of every key, in the order of the file.

    Lines that were never finished, and rows of another layout, are passed over.
    """
    rows: dict[str, BenchRow] = {}
    if not path.is_file():
        return rows
    known = {f.name for f in fields(BenchRow)}
    for line in path.read_bytes().splitlines():
        try:
            data = json.loads(line)
        except ValueError:
            continue
        if isinstance(data, dict) and {"key", "model", "task", "dataset", "seed"} <= set(data) <= known:
            rows.pop(data["key"], None)
            rows[data["key"]] = BenchRow.from_dict(data)
    return rows


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _numbers(values: Mapping[str, float | None]) -> dict[str, float]:
    return {k: math.nan if v is None else v for k, v in values.items()}
