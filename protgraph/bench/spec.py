"""Specification of a benchmark: models × tasks × seeds on one or more datasets, read from TOML."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Collection, Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    Strict,
    StrictStr,
    ValidationError,
    model_validator,
)

from protgraph import registry
from protgraph.bench.published import PublishedScore
from protgraph.errors import OptionError, PluginLoadError, ProtgraphError, UnknownNameError, suggest
from protgraph.model.settings import change_model
from protgraph.model.spec import ModelSpec
from protgraph.validation import Seed, check_value, describe_errors, read_toml, unknown_name

if TYPE_CHECKING:
    from protgraph.data.datasets.dataset import Dataset

__all__ = ["BenchSpec", "PublishedScore", "TrainingData", "trained_label"]

_BUILT_IN = resources.files("protgraph.bench")
#: Keys of the TOML file, in the order of the documentation.
_KEYS = (
    *("name", "dataset", "datasets", "labels", "tasks", "models", "baselines", "seeds", "jobs", "out", "read", "fit"),
    *("optional", "train_on", "trained", "published"),
)
#: Fields of the class that are subtables of ``[fit]`` in the file.
_TABLES = {"fit_tasks": "fit.tasks", "fit_models": "fit.models"}
#: Keys that :meth:`BenchSpec.to_dict` leaves out if they are empty.
_OPTIONAL_KEYS = ("datasets", "trained", "train_on", "published", "labels", "read", "optional")


class TrainingData(BaseModel):
    """Registered dataset and its task, for a task whose own dataset has no training split; ``[train_on.TASK]``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dataset: StrictStr
    task: StrictStr

    def add_to(self, dataset: Dataset, task: str) -> Dataset:
        """Return a dataset with the splits train and val of this one, without homologs of its proteins."""
        from protgraph.labels.evaluation_dataset import train_on_other
        from protgraph.labels.loading import load_dataset

        return train_on_other(dataset, task, load_dataset(self.dataset, task=self.task), self.task)


def trained_label(name: str) -> str:
    """Return the name of a trained model in tables: its name, for a file that of the file or of its recipe's folder."""
    if name not in registry.trained_models:
        path = Path(name).resolve()
        name = path.parent.name if path.name == "model.safetensors" else path.stem
    return f"trained:{name}"


def _without_repeats(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(set(values)) != len(values):
        raise ValueError("a list without repeated elements")
    return values


def _folder_name(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", value):
        raise ValueError("a folder name of letters, digits, '.', '_' and '-'")
    return value


_Seed = Annotated[Seed, Strict()]
_Names = Annotated[tuple[StrictStr, ...], AfterValidator(_without_repeats)]
_Options = dict[str, Any]


def _inline_model(table: Mapping[str, Any], where: str) -> ModelSpec:
    """Return the model of a table ``[[models]]``: by name or file, or a specification, with ``set`` and ``as``."""
    data = dict(table)
    settings, label = data.pop("set", {}), data.pop("as", None)
    check_value(settings, dict[str, Any], path=f"{where}: models: set")
    check_value(label, str | None, path=f"{where}: models: as")
    if data.keys() == {"name"}:
        if label is None:
            raise OptionError(
                f"{where}: models: {dict(table)!r} has no 'as'. Give the name in the tables: as = \"{data['name']}_1\"."
            )
        from protgraph.model.build import as_model_spec

        spec = as_model_spec(data["name"])
    else:
        spec = ModelSpec.from_dict(data)
    spec = change_model(spec, settings, where=f"{where}: models: set")
    return spec if label is None else replace(spec, name=label)


def _models_and_graphs(models: Any, graphs: Mapping[str, ModelSpec], where: str) -> dict[str, Any]:
    """Return the fields ``models``, names only, and ``graphs``; other values are left to the validation."""
    if not isinstance(models, list | tuple):
        return {}
    names, specs = [], dict(graphs)
    for model in models:
        if isinstance(model, Mapping):
            model = _inline_model(model, where)
        elif isinstance(model, str) and model.endswith(".toml"):
            model = ModelSpec.from_toml(model)
        if isinstance(model, ModelSpec):
            specs[model.name] = model
        names.append(model.name if isinstance(model, ModelSpec) else model)
    used = {name: specs[name] for name in names if isinstance(name, str) and name in specs}
    return {"models": tuple(names), "graphs": used}


def _relative_to(folder: Path, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the spec of a file in ``folder`` with the paths that it has; values of a wrong type stay as they are."""
    spec = dict(data)
    if "dataset" in data:
        spec["dataset"] = _relative_path(folder, data["dataset"], registry.datasets)
    if "labels" in data:
        spec["labels"] = _relative_path(folder, data["labels"])
    if isinstance(data.get("datasets"), dict):
        spec["datasets"] = dict(data["datasets"])
        for task in data.get("tasks", ()):
            if task in spec["datasets"]:
                spec["datasets"][task] = _relative_path(folder, data["datasets"][task], registry.datasets)
    if isinstance(data.get("models"), list):
        spec["models"] = [_beside(folder, model) for model in data["models"]]
    if isinstance(data.get("trained"), dict):
        spec["trained"] = {task: _trained_beside(folder, names) for task, names in data["trained"].items()}
    return spec


def _trained_beside(folder: Path, names: Any) -> Any:
    """Return trained models of a spec with the paths of their files relative to its folder."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return names
    return [_relative_path(folder, name, registry.trained_models) for name in names]


def _relative_path(folder: Path, name: Any, registered: Container[object] = ()) -> Any:
    """Return a path relative to the folder; a registered name, and a value of a wrong type, stays as it is."""
    if not isinstance(name, str) or name in registered:
        return name
    return str(folder / name)


class BenchSpec(BaseModel):
    """Benchmark specification: everything that determines the rows, and the output folder.

    Parameters
    ----------
    name : str
        Name of the benchmark and of its folder ``<out>/<name>``: letters, digits, '.', '_' and '-'.
    dataset : str
        Registry name, folder of structure or FASTA files, or graph store. In a TOML file, folders are relative to
        that file. Not needed if every task has one in ``datasets``.
    datasets : mapping of str to str
        Task → dataset, for tasks that are on another one than ``dataset``.
    read : mapping
        Options of :class:`protgraph.structure.ReadOptions` for every file: ``chains``, ``model_number``, ``altloc``,
        ``assembly``.
    labels : Path, optional
        Table of labels or splits for a folder; see :mod:`protgraph.data.datasets.folder`. In a TOML file, relative to
        that file.
    tasks : tuple of str
        Registry names, in the order of the tables. For a folder, a task may be a label column; its random split uses
        seed 0, independent of the seeds of the runs.
    models : tuple of str, ModelSpec or mapping
        Registry names, TOML files (in a TOML file relative to it) or specifications, of which the attribute keeps the
        names. A mapping ``{"name": "gcn", "as": "gcn128", "set": {"layers.*.dim": 128}}`` is a model with other values
        (:func:`protgraph.model.change_model`) under the name ``as``; a specification may have ``set`` too.
    graphs : mapping of str to ModelSpec
        The specifications among ``models``, by name; taken from there.
    seeds : tuple of int
        One run per seed, for every model and task.
    baselines : tuple of str
        Trivial models among ``models`` that every other model must beat.
    optional : tuple of str
        Those of ``models`` that may be absent, e.g. without their extra or weights: their errors do not fail the run.
    fit : mapping
        Options of :class:`protgraph.train.FitConfig` for every run.
    fit_tasks, fit_models : mapping of str to mapping
        Options for one task or one model; a model's options override a task's. ``[fit.tasks.NAME]`` and
        ``[fit.models.NAME]`` in a TOML file.
    trained : mapping of str to tuple of str
        Task → trained models to test beside the others, by name or checkpoint file; in a TOML file relative to it. For
        a task whose dataset has no training split they are the only models.
    train_on : mapping of str to TrainingData
        Task → dataset and task to train on, for a dataset without a training split; homologs are left out.
    published : tuple of PublishedScore
        Scores of published methods on the tasks, for the report.
    jobs : int
        Worker processes, one thread each; 0 starts one per core.
    out : Path
        Folder of all benchmarks. If its last part is the name, it is the folder of this one.
    where : str
        Name of this spec in error messages: its file.

    Raises
    ------
    OptionError
        Unknown or missing key, or a value of the wrong type; the message has the path of the key.
    UnknownNameError
        A baseline, or a table of options, for a model or task that the spec does not run.

    Examples
    --------
    >>> spec = BenchSpec.from_dict({"name": "mine", "dataset": "pdb_core", "tasks": ["interface"], "models": ["gcn"],
    ...                             "seeds": [0], "fit": {"epochs": 5, "models": {"gcn": {"epochs": 9}}}})
    >>> spec.options("gcn", "interface")
    {'epochs': 9}
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    name: Annotated[StrictStr, AfterValidator(_folder_name)]
    dataset: StrictStr = ""
    datasets: dict[StrictStr, StrictStr] = Field(default_factory=dict)
    tasks: Annotated[_Names, Field(min_length=1)]
    models: Annotated[_Names, Field(min_length=1)]
    seeds: Annotated[tuple[_Seed, ...], Field(min_length=1), AfterValidator(_without_repeats)] = (0, 1, 2)
    baselines: _Names = ()
    optional: _Names = ()
    read: _Options = Field(default_factory=dict)
    fit: _Options = Field(default_factory=dict)
    fit_tasks: dict[str, _Options] = Field(default_factory=dict)
    fit_models: dict[str, _Options] = Field(default_factory=dict)
    trained: dict[StrictStr, _Names] = Field(default_factory=dict)
    train_on: dict[StrictStr, TrainingData] = Field(default_factory=dict)
    published: tuple[PublishedScore, ...] = ()
    labels: Path | None = None
    jobs: Annotated[NonNegativeInt, Field(strict=True)] = 0
    out: Path = Path("runs")
    graphs: dict[str, ModelSpec] = Field(default_factory=dict)
    where: str = "bench spec"

    def __init__(self, **data: Any) -> None:
        where = data.get("where", "bench spec")
        data |= _models_and_graphs(data.get("models"), data.get("graphs", {}), where)
        try:
            super().__init__(**data)
        except ValidationError as e:
            raise OptionError(f"{where}: {describe_errors(e, keys=_KEYS, paths=_TABLES)}") from e

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BenchSpec) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # options are dicts

    @model_validator(mode="after")
    def _check_members(self) -> BenchSpec:
        of_tasks: dict[str, Collection[str]] = {
            "fit.tasks": self.fit_tasks,
            "datasets": self.datasets,
            "trained": self.trained,
            "train_on": self.train_on,
            "published": [score.task for score in self.published],
        }
        of_models: dict[str, Collection[str]] = {
            "baselines": self.baselines,
            "optional": self.optional,
            "fit.models": self.fit_models,
        }
        for tables, allowed in ((of_models, self.models), (of_tasks, self.tasks)):
            for key, names in tables.items():
                for name in names:
                    if name not in allowed:
                        raise UnknownNameError(f"{self.where}: {key}: {unknown_name(name, allowed)}")
        return self

    @model_validator(mode="after")
    def _check_tasks(self) -> BenchSpec:
        for task in self.trained:
            labels = self.rows_of(task)
            repeated = [name for name in labels if labels.count(name) > 1]
            if repeated:
                raise OptionError(
                    f"{self.where}: trained.{task}: two models are called {repeated[0]!r}. Rename a file."
                )
        missing = [task for task in self.tasks if not self.dataset_of(task)]
        if missing:
            raise OptionError(
                f"{self.where}: dataset: missing for task {missing[0]!r}. Give 'dataset' for all tasks, or the task in "
                "[datasets]."
            )
        return self

    @model_validator(mode="after")
    def _check_read(self) -> BenchSpec:
        from protgraph.structure import ReadOptions

        ReadOptions.from_dict(self.read, where=f"{self.where}: read")
        return self

    @property
    def folder(self) -> Path:
        """Folder of rows, tables, figures and report: ``out/name``, or ``out`` if it has this name already."""
        return self.out if self.out.name == self.name else self.out / self.name

    def dataset_of(self, task: str) -> str:
        """Return the registry name, folder or store of a task."""
        return self.datasets.get(task, self.dataset)

    def is_folder(self, task: str) -> bool:
        """Return True if the dataset of a task is a folder of files instead of a registered dataset."""
        return self.dataset_of(task) not in registry.datasets

    def data(self, task: str) -> Dataset:
        """Return the dataset for one of the tasks."""
        from protgraph.labels import load_dataset
        from protgraph.structure import ReadOptions

        read = ReadOptions.from_dict(self.read) if self.read else None
        dataset = load_dataset(self.dataset_of(task), labels=self.labels, task=task, read=read)
        return self.train_on[task].add_to(dataset, task) if task in self.train_on else dataset

    def graph_of(self, model: str) -> ModelSpec:
        """Return the specification of one of the models: the one that was given, or that of the registry."""
        if model in self.graphs:
            return self.graphs[model]
        with self.errors_at("models", UnknownNameError):
            return registry.models.get(model)

    def rows_of(self, task: str) -> tuple[str, ...]:
        """Return the names of all models of a task in tables, trained ones last."""
        return (*self.models, *(trained_label(name) for name in self.trained.get(task, ())))

    def options(self, model: str, task: str) -> dict[str, Any]:
        """Return the ``FitConfig`` options of one model on one task, without the seed."""
        return {**self.fit, **self.fit_tasks.get(task, {}), **self.fit_models.get(model, {})}

    @classmethod
    def default(cls) -> BenchSpec:
        """Return the spec of ``make bench``."""
        return cls.built_in("pdb_core")

    @classmethod
    def built_in(cls, name: str) -> BenchSpec:
        """Return a spec that is part of the package, by name."""
        names = sorted(f.name.removesuffix(".toml") for f in _BUILT_IN.iterdir() if f.name.endswith(".toml"))
        if name not in names:
            raise OptionError(
                f"bench spec {name!r} not found.{suggest(name, names)} Allowed: a TOML file (see 'bench run --help'), "
                f"or a built-in spec: {', '.join(names)}."
            )
        text = _BUILT_IN.joinpath(f"{name}.toml").read_text(encoding="utf-8")
        return cls.from_dict(tomllib.loads(text), where=f"{name}.toml")

    @classmethod
    def from_toml(cls, path: str | Path) -> BenchSpec:
        """Read a spec from a TOML file.

        Raises :class:`OptionError` if the file is missing or not TOML, or a key is unknown, missing or of the wrong
        type. Raises :class:`UnknownNameError` for a baseline, or a table of options, for a model or task that the spec
        does not run.
        """
        if not isinstance(path, str | Path):
            raise OptionError(f"BenchSpec.from_toml: path = {path!r}. Allowed: a path.")
        path = Path(path)
        data = read_toml(path, "bench spec")
        return cls.from_dict(_relative_to(path.parent, data), where=str(path))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, where: str = "bench spec") -> BenchSpec:
        """Build a spec from plain data with the layout of the TOML file; ``where`` names it in errors."""
        if not isinstance(data, Mapping):
            raise OptionError(f"{where}: {data!r}. Allowed: a dict of the keys {', '.join(_KEYS)}.")
        unknown = [key for key in data if key not in _KEYS]
        if unknown:
            raise OptionError(f"{where}: {unknown_name(unknown[0], _KEYS)}")
        values = {**data, "where": where}
        fit = data.get("fit")
        if isinstance(fit, Mapping):
            values["fit"] = {key: value for key, value in fit.items() if key not in ("tasks", "models")}
            values |= {f"fit_{key}": fit[key] for key in ("tasks", "models") if key in fit}
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON and TOML; the inverse of :meth:`from_dict`."""
        plain = self.model_dump(mode="json", exclude={"graphs", "where"})
        tables = {key: plain.pop(f"fit_{key}") for key in ("tasks", "models")}
        fit = plain.pop("fit") | {key: table for key, table in tables.items() if table}
        lists = {key: plain.pop(key) for key in ("tasks", "models", "seeds", "baselines")}
        lists["models"] = [self.graphs[name].to_dict() if name in self.graphs else name for name in self.models]
        plain = {key: plain[key] for key in ("name", "dataset", "jobs", "out", *_OPTIONAL_KEYS)}
        return {key: value for key, value in plain.items() if value or key not in _OPTIONAL_KEYS} | lists | {"fit": fit}

    def replace(self, **changes: Any) -> BenchSpec:
        """Return a copy with other values, validated again."""
        return BenchSpec(**{name: getattr(self, name) for name in type(self).model_fields} | changes)

    def with_setting(self, path: str, value: Any) -> BenchSpec:
        """Return the spec with another value in all models that have a path; the others stay as they are.

        ``path`` and ``value`` are those of ``--set``; see :func:`protgraph.model.change_model`.

        Raises :class:`OptionError` if no model has the path, or it is ``name``, since names must differ.
        """
        if path == "name":
            raise OptionError("--set name: models keep their names in a benchmark. Change another path.")
        graphs, problems = {}, []
        for name in self.models:
            try:
                graph = self.graphs[name] if name in self.graphs else replace(self.graph_of(name), name=name)
                graphs[name] = change_model(graph, {path: value}, where="--set")
            except (OptionError, PluginLoadError) as e:
                problems.append(e)
        if not graphs:
            raise OptionError(f"no model of {self.where} has the path. {problems[0]}") from problems[0]
        return self.replace(graphs=self.graphs | graphs)

    def check(self, config: type) -> None:
        """Check the dataset's and the models' names, and every training option; loads no component.

        ``config``: class of the training options, :class:`protgraph.train.FitConfig`. Raises :class:`UnknownNameError`
        or :class:`OptionError` with the file and the key.
        """
        from protgraph.data.datasets.protein_files import open_folder

        with self.errors_at("models", UnknownNameError):
            for name in self.models:
                if name not in self.graphs:
                    registry.models.entry(name)
        for task, names in self.trained.items():
            with self.errors_at(f"trained.{task}", UnknownNameError):
                for name in names:
                    _find_trained(name)
        with self.errors_at("dataset", UnknownNameError):
            for task in filter(self.is_folder, self.tasks):
                open_folder(self.dataset_of(task))
        tables = {"fit": self.fit}
        tables |= {f"fit.tasks.{name}": options for name, options in self.fit_tasks.items()}
        tables |= {f"fit.models.{name}": options for name, options in self.fit_models.items()}
        for key, options in tables.items():
            with self.errors_at(key, OptionError):
                _check_fit_options(options, config)

    @contextmanager
    def errors_at(self, key: str, *kinds: type[ProtgraphError]) -> Iterator[None]:
        """Put the name of this spec and a key before the message of errors of these classes in the block."""
        try:
            yield
        except kinds as e:
            raise type(e)(f"{self.where}: {key}: {e}") from e


def _beside(folder: Path, model: Any) -> Any:
    """Return a model of a spec with the path of its TOML file relative to the folder of the spec."""
    if isinstance(model, Mapping) and isinstance(model.get("name"), str):
        return {**model, "name": _beside(folder, model["name"])}
    is_file = isinstance(model, str) and model.endswith(".toml")
    return str(folder / model) if is_file else model


def _find_trained(name: str) -> None:
    """Raise unless a trained model or a file has the name."""
    if Path(name).is_file():
        return
    try:
        registry.trained_models.entry(name)
    except UnknownNameError as e:
        raise UnknownNameError(f"{e} Or give a checkpoint file.") from e


def _check_fit_options(options: Mapping[str, Any], config: type) -> None:
    """Check names, types and values of training options; the seed is not one of them."""
    allowed = [name for name in inspect.signature(config).parameters if name != "seed"]
    hints = get_type_hints(config, include_extras=True)
    for key, value in options.items():
        if key not in allowed:
            raise OptionError(unknown_name(key, allowed))
        check_value(value, hints[key], path=key)
    config(**options)
