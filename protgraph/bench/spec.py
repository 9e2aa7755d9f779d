"""What a benchmark compares: models × tasks × seeds on one dataset, as plain data from a TOML file."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from protgraph import registry
from protgraph.errors import OptionError, UnknownNameError, suggest

if TYPE_CHECKING:
    from protgraph.data.datasets.dataset import Dataset

__all__ = ["BenchSpec"]

_LISTS = {"tasks": str, "models": str, "seeds": int, "floors": str}
_PLAIN = {"name": str, "dataset": str, "labels": str, "jobs": int, "out": str}
_FOLDER = resources.files("protgraph.bench")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, kw_only=True)
class BenchSpec:
    """One benchmark: everything that decides its rows, and where they go.

    Parameters
    ----------
    name : str
        Name of the benchmark and of its folder ``<out>/<name>``.
    dataset : str
        Registry name, or a folder of structure or FASTA files. In a TOML file, folders are relative to that file.
    labels : Path, optional
        Table of labels or splits of a folder; see :mod:`protgraph.data.datasets.folder`. In a TOML file, relative to that.
    tasks, models : tuple of str
        Registry names, in the order of the tables. Of a folder, a task may be a label column; its random split is that
        of seed 0, whatever the seeds of the runs.
    seeds : tuple of int
        One run each, for every model and task.
    floors : tuple of str
        Those among ``models`` that every other model must beat.
    fit : mapping
        Options of :class:`protgraph.train.FitConfig` for every run.
    fit_tasks, fit_models : mapping of str to mapping
        The same for one task or one model; a model's options win over a task's.
    jobs : int
        Worker processes, one thread each; 0 takes one a core.
    out : Path
        Folder of all benchmarks.
    where : str
        What error messages call this spec: its file.

    Examples
    --------
    >>> spec = BenchSpec.from_dict({"name": "mine", "dataset": "pdb_core", "tasks": ["interface"], "models": ["gcn"],
    ...                             "seeds": [0], "floors": [], "fit": {"epochs": 5, "models": {"gcn": {"epochs": 9}}}})
    >>> spec.options("gcn", "interface")
    {'epochs': 9}
    """

    name: str
    dataset: str
    tasks: tuple[str, ...]
    models: tuple[str, ...]
    seeds: tuple[int, ...] = (0, 1, 2)
    floors: tuple[str, ...] = ()
    fit: Mapping[str, Any] = field(default_factory=dict)
    fit_tasks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    fit_models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    labels: Path | None = None
    jobs: int = 0
    out: Path = Path("runs")
    where: str = field(default="bench spec", compare=False)

    def __post_init__(self) -> None:
        for key in _LISTS:
            if isinstance(getattr(self, key), str):
                raise OptionError(f"{self.where}: {key} are a list; write {key} = [{getattr(self, key)!r}]")
            object.__setattr__(self, key, tuple(getattr(self, key)))
        for key in ("fit", "fit_tasks", "fit_models"):
            object.__setattr__(self, key, MappingProxyType(dict(getattr(self, key))))
        object.__setattr__(self, "out", Path(self.out))
        object.__setattr__(self, "labels", None if self.labels is None else Path(self.labels))
        if not _NAME.fullmatch(self.name):
            raise OptionError(f"{self.where}: name {self.name!r} names a folder: letters, digits, '.', '_' and '-'")
        if self.jobs < 0:
            raise OptionError(f"{self.where}: jobs = {self.jobs}; give a number of processes, or 0 for one a core")
        for key in ("tasks", "models", "seeds"):
            if not getattr(self, key):
                raise OptionError(f"{self.where}: {key} is empty; there is nothing to run")
        self._check_members("floors", self.floors, "models")
        self._check_members("fit.tasks", self.fit_tasks, "tasks")
        self._check_members("fit.models", self.fit_models, "models")

    def __reduce__(self) -> tuple[object, ...]:
        return partial(BenchSpec.from_dict, where=self.where), (self.to_dict(),)

    def _check_members(self, path: str, given: Iterable[str], of: str) -> None:
        for name in given:
            if name not in getattr(self, of):
                raise UnknownNameError(_unknown(f"{self.where}: {path}", name, getattr(self, of), f"this spec's {of}"))

    @property
    def folder(self) -> Path:
        """Where rows, tables, figures and report lie."""
        return self.out / self.name

    @property
    def is_folder(self) -> bool:
        """Whether the dataset is a folder of files, and no registered one."""
        return self.dataset not in registry.datasets

    def data(self, task: str) -> Dataset:
        """The dataset for one of the tasks."""
        from protgraph.train import load_dataset

        return load_dataset(self.dataset, labels=self.labels, task=task)

    def options(self, model: str, task: str) -> dict[str, Any]:
        """The ``FitConfig`` options of one model on one task, without the seed."""
        return {**self.fit, **self.fit_tasks.get(task, {}), **self.fit_models.get(model, {})}

    @classmethod
    def default(cls) -> BenchSpec:
        """What ``make bench`` runs."""
        return cls.built_in("pdb_core")

    @classmethod
    def built_in(cls, name: str) -> BenchSpec:
        """A comparison that comes with protgraph, by its name."""
        known = sorted(f.name.removesuffix(".toml") for f in _FOLDER.iterdir() if f.name.endswith(".toml"))
        if name not in known:
            raise OptionError(
                f"bench spec {name!r} is no file, and none of the built-in ones: {', '.join(known)}.\n"
                "Give the path of a TOML file; `protgraph bench --help` shows one."
            )
        text = _FOLDER.joinpath(f"{name}.toml").read_text(encoding="utf-8")
        return cls.from_dict(tomllib.loads(text), where=f"{name}.toml")

    @classmethod
    def from_toml(cls, path: str | Path) -> BenchSpec:
        """Read a spec; tables ``[fit]``, ``[fit.tasks.NAME]`` and ``[fit.models.NAME]`` hold training options.

        Raises
        ------
        OptionError
            A file that is missing or no TOML; a key that a spec does not have; a value of another type.
        UnknownNameError
            A floor, or a table of options, for something that the spec does not run.
        """
        path = Path(path)
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as e:
            raise OptionError(f"bench spec {str(path)!r} cannot be read: {e.strerror}") from e
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
            raise OptionError(f"bench spec {str(path)!r} is no TOML: {e}") from e
        for key in ("dataset", "labels"):
            if isinstance(data.get(key), str) and (key == "labels" or data[key] not in registry.datasets):
                data[key] = str(path.parent / data[key])
        return cls.from_dict(data, where=str(path))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, where: str = "bench spec") -> BenchSpec:
        """A spec from plain data laid out like the TOML file; ``where`` names it in errors."""
        data = {**data}
        fit = _table(data.pop("fit", {}), f"{where}: fit")
        tables = {key: _table(fit.pop(key, {}), f"{where}: fit.{key}") for key in ("tasks", "models")}
        for key in tables:
            tables[key] = {n: _table(v, f"{where}: fit.{key}.{n}") for n, v in tables[key].items()}
        for key, value in data.items():
            _check_type(key, value, where)
        missing = [key for key in ("name", "dataset", "tasks", "models") if key not in data]
        if missing:
            raise OptionError(f"{where}: {missing[0]!r} is missing; a bench spec has {_known()}")
        return cls(**data, fit=fit, fit_tasks=tables["tasks"], fit_models=tables["models"], where=where)

    def to_dict(self) -> dict[str, Any]:
        """The inverse of :meth:`from_dict`, for JSON and TOML."""
        tables = {"tasks": self.fit_tasks, "models": self.fit_models}
        fit = dict(self.fit) | {key: {n: dict(v) for n, v in t.items()} for key, t in tables.items() if t}
        lists = {key: list(getattr(self, key)) for key in _LISTS}
        plain = {"name": self.name, "dataset": self.dataset, "jobs": self.jobs, "out": str(self.out)}
        plain |= {"labels": str(self.labels)} if self.labels else {}
        return plain | lists | {"fit": fit}

    def replace(self, **changes: Any) -> BenchSpec:
        """This spec with other values."""
        return dataclasses.replace(self, **changes)

    def check(self, config: type) -> None:
        """Check the dataset's and the models' names, and every training option; loads no component.

        Parameters
        ----------
        config : type
            The dataclass that takes the options, :class:`protgraph.train.FitConfig`.

        Raises
        ------
        UnknownNameError, OptionError
            With the file and the key at fault.
        """
        from protgraph.train.user_dataset import find_folder

        asked = [("dataset", find_folder, self.dataset)] if self.is_folder else []
        for path, find, name in (*asked, *(("models", registry.models.entry, m) for m in self.models)):
            try:
                find(name)
            except UnknownNameError as e:
                raise UnknownNameError(f"{self.where}: {path}: {e}") from None
        known = [f.name for f in dataclasses.fields(config) if f.init and f.name != "seed"]
        tables = {"fit": self.fit}
        tables |= {f"fit.tasks.{name}": options for name, options in self.fit_tasks.items()}
        tables |= {f"fit.models.{name}": options for name, options in self.fit_models.items()}
        for path, options in tables.items():
            for key in options:
                if key not in known:
                    raise OptionError(_unknown(f"{self.where}: {path}", key, known, f"a {config.__name__}"))
            try:
                config(**options)
            except (OptionError, TypeError) as e:
                raise OptionError(f"{self.where}: {path}: {e}") from e


def _known() -> str:
    return ", ".join((*_PLAIN, *_LISTS, "fit"))


def _table(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise OptionError(f"{path} = {value!r} must be a table of options")
    return dict(value)


def _check_type(key: str, value: Any, where: str) -> None:
    if key in _PLAIN:
        if type(value) is not _PLAIN[key]:
            raise OptionError(f"{where}: {key} = {value!r} must be {_PLAIN[key].__name__}")
    elif key in _LISTS:
        if not isinstance(value, list | tuple) or any(type(v) is not _LISTS[key] for v in value):
            raise OptionError(f"{where}: {key} = {value!r} must be a list of {_LISTS[key].__name__}")
        if len(set(value)) != len(value):
            raise OptionError(f"{where}: {key} = {value!r} names something twice")
    else:
        raise OptionError(_unknown(where, key, (*_PLAIN, *_LISTS, "fit"), "a bench spec"))


def _unknown(path: str, name: str, known: Collection[str], owner: str) -> str:
    return f"{path}: unknown {name!r}.{suggest(name, known)}\nKnown to {owner}: {', '.join(sorted(known))}"
