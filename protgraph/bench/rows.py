"""Jobs and rows of a benchmark: one per model, task and seed, kept in a file of JSON lines that a run resumes from."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BeforeValidator, ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from protgraph.bench.spec import TrainingData
from protgraph.errors import DatasetError, OptionError
from protgraph.failure import Failure
from protgraph.file_io import append_line, read_json_lines
from protgraph.validation import check_format_version, describe_errors

if TYPE_CHECKING:
    from protgraph.data.datasets.dataset import Dataset
    from protgraph.task.task import Task

__all__ = ["BenchJob", "BenchRow", "append_row", "finished_rows", "read_rows"]

ROW_VERSION = 1  # of the rows; a later one is in the keys "format_version" and "protgraph" of each row

_T = TypeVar("_T", bound="BenchJob | BenchRow")
_CONFIG = ConfigDict(extra="forbid")
#: A number; JSON has no NaN and no infinity, which are null there.
_Number = Annotated[int | float, BeforeValidator(lambda value: math.nan if value is None else value)]


@dataclass(frozen=True, config=_CONFIG)
class BenchJob:
    """One planned run: everything that determines its numbers."""

    model: str  # registry name
    task: str  # registry name; a task may be a label column of the user's table
    dataset: str  # registry name, or the name of a folder of user files
    seed: int
    graph: Mapping[str, Any] = field(default_factory=dict)  # the model spec as plain data
    config: Mapping[str, Any] = field(default_factory=dict)  # options of `FitConfig` without the seed
    dataset_version: str = ""  # version of a registered dataset; fingerprint of the files and labels of a folder
    # folder of user files and its table; empty for a registered dataset. The paths are not part of the key:
    # `dataset_version` covers the content
    folder: str = ""
    labels: str = ""  # path of the table
    # options of `structure.ReadOptions` that differ from the defaults
    read: Mapping[str, Any] = field(default_factory=dict)
    # distribution, version and code digest of each component; see `bench.job_plan.plan_jobs`
    sources: Mapping[str, str] = field(default_factory=dict)
    out: str = ""  # folder to which predictions are written, not part of the key; empty writes none
    # name or file of a trained model that is tested without training; `model` is its name in tables
    trained: str = ""
    # fields of `bench.spec.TrainingData`, if the model is trained on another dataset
    train_on: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BenchJob:
        """Build a job from plain data; the inverse of :func:`dataclasses.asdict`."""
        return _validated(cls, data, "bench job")

    @property
    def key(self) -> str:
        """First 16 hexadecimal digits of the SHA-256 of everything that determines the numbers.

        A finished row with this key is not run again.
        """
        paths = ("folder", "labels", "out", "trained")  # their contents are in dataset_version and sources
        content = {name: value for name, value in asdict(self).items() if name not in paths}
        text = json.dumps(content, sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def data(self) -> Dataset:
        """Return the dataset."""
        from protgraph.labels import load_dataset
        from protgraph.structure import ReadOptions

        read = ReadOptions.from_dict(self.read) if self.read else None
        dataset = load_dataset(self.folder or self.dataset, labels=self.labels or None, task=self.task, read=read)
        if self.folder and dataset.version != self.dataset_version:
            raise DatasetError(
                f"files or labels of {self.folder!r} changed while the benchmark ran: version {dataset.version}, "
                f"planned {self.dataset_version}. Start the benchmark again."
            )
        return TrainingData(**self.train_on).add_to(dataset, self.task) if self.train_on else dataset


@dataclass(frozen=True, config=_CONFIG)
class BenchRow:
    """Result of one run."""

    key: str  # key of its `BenchJob`
    model: str
    task: str
    dataset: str
    seed: int
    config: Mapping[str, Any] = field(default_factory=dict)  # options of `FitConfig`
    error: str = ""  # empty for a finished run; otherwise the error, and no value below is meaningful
    # split ("val", "test" and any other) → metric → value, at the epoch chosen on the validation split
    metrics: Mapping[str, Mapping[str, _Number]] = field(default_factory=dict)
    monitor: str = ""  # metric that chooses the epoch
    modes: Mapping[str, str] = field(default_factory=dict)  # metric → "max" or "min", the better direction
    parameters: int = 0  # number of learnable parameters
    residues_per_second: _Number = math.nan  # training throughput, without validation
    seconds: _Number = math.nan  # duration of the whole run: load, train, validate, test
    peak_memory_mib: _Number = math.nan  # peak memory of the run; see `process_memory.peak_memory`
    epochs: int = 0  # epochs that were run
    best_epoch: int = 0  # the chosen one, counted from 1
    # one entry per epoch: "epoch", "train_loss", "val_loss" and the validation metrics
    history: tuple[Mapping[str, _Number], ...] = ()
    # split → `(20, 20)` counts, native residue types in rows and predicted ones in columns
    confusion: Mapping[str, list[list[int]]] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()  # proteins that could not be used
    # the monitored metric of each test protein; NaN where it is undefined, and empty if it is not known
    protein_scores: tuple[_Number, ...] = ()
    test_proteins: int = 0  # proteins of the test split with a known label
    # of these, proteins with a positive label; None if labels are not yes/no labels
    test_with_positives: int | None = None
    test_set: str = ""  # digest of the names of the test proteins
    # tested split → file of its predictions (`bench.run_predictions.RunPredictions`), relative to the
    # folder of the benchmark
    predictions: Mapping[str, str] = field(default_factory=dict)
    dataset_version: str = ""  # as in the job

    def __repr__(self) -> str:
        score = f"test {self.monitor} {self.score:.4g}, epoch {self.best_epoch} of {self.epochs}"
        outcome = f"failed: {self.error.splitlines()[0][:200]}" if self.error else score
        return f"BenchRow of {self.model} on {self.task} of {self.dataset}, seed {self.seed}: {outcome}"

    @property
    def mode(self) -> str:
        """Better direction of the monitored metric, "max" or "min"."""
        return self.modes.get(self.monitor, "max")

    @property
    def score(self) -> float:
        """The monitored metric on the test split; NaN for a failed run."""
        return self.metrics.get("test", {}).get(self.monitor, math.nan)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> BenchRow:
        """Build a row from plain data; the inverse of :meth:`to_dict`. A null among the numbers becomes NaN."""
        return _validated(cls, data, "bench row")

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for strict JSON; NaN and infinity become None."""
        return json.loads(TypeAdapter(BenchRow).dump_json(self))

    @classmethod
    def of(cls, job: BenchJob, task: Task | None = None) -> BenchRow:
        """Return the row of a job without results, with the metrics and directions of a task if given."""
        row = cls(job.key, job.model, job.task, job.dataset, job.seed, dict(job.config))
        row = replace(row, dataset_version=job.dataset_version)
        if task is None:
            return row
        return replace(row, monitor=task.monitor, modes={metric.name: metric.mode for metric in task.metrics})

    @classmethod
    def failed(cls, job: BenchJob, error: str, *, seconds: float = math.nan) -> BenchRow:
        """Return the row of a run that ended with an error."""
        return replace(cls.of(job), error=error, seconds=seconds)


def _validated(cls: type[_T], data: Mapping[str, Any], name: str) -> _T:
    try:
        return TypeAdapter(cls).validate_python(dict(data))
    except ValidationError as e:
        raise OptionError(f"{name}: {describe_errors(e, keys=list(cls.__dataclass_fields__))}") from e


def append_row(path: Path, row: BenchRow) -> None:
    """Append one row to a file of JSON lines."""
    append_line(path, json.dumps(row.to_dict(), sort_keys=True, allow_nan=False))


def read_rows(path: Path) -> dict[str, BenchRow]:
    """Return the newest row per key, in the order of the file.

    Unfinished lines, and rows with other columns, are skipped: their runs are done again.

    Raises :class:`OptionError` if rows have a later format.
    """
    rows: dict[str, BenchRow] = {}
    for data in read_json_lines(path):
        version, writer = data.pop("format_version", ROW_VERSION), data.pop("protgraph", None)
        check_format_version(f"rows of a benchmark {str(path)!r}", version, ROW_VERSION, writer=writer)
        try:
            row = BenchRow.from_dict(data)
        except OptionError:  # another layout
            continue
        rows.pop(row.key, None)
        rows[row.key] = row
    return rows


def finished_rows(path: Path) -> dict[str, BenchRow]:
    """Return the newest row per key, of runs that finished and whose files of predictions exist beside the rows."""
    rows = read_rows(path)
    return {key: row for key, row in rows.items() if not row.error and _has_predictions(row, path.parent)}


def _has_predictions(row: BenchRow, folder: Path) -> bool:
    return all((folder / name).is_file() for name in row.predictions.values())
