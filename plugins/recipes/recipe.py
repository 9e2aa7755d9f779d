"""Recipe of a trained model, read from TOML: data, models, training options, seeds and calibration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from protgraph import registry
from protgraph.data import Dataset, TaskCard
from protgraph.errors import OptionError, suggest
from protgraph.labels import Evaluation, load_dataset
from protgraph.structure import ReadOptions
from protgraph.train import FitConfig
from protgraph.validation import Seed, describe_errors, read_toml

__all__ = ["Recipe"]


class EvaluationSet(BaseModel):
    """Dataset by name, and its task."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dataset: str
    task: str

    def load(self) -> Evaluation:
        """Return the dataset with its task."""
        return Evaluation(load_dataset(self.dataset, task=self.task), self.task)


class Recipe(BaseModel):
    """Everything that determines a trained model.

    Parameters
    ----------
    name, summary : str
        Name of the trained model, and one sentence about its prediction.
    dataset : str
        Registry name, or a folder, relative to the TOML file.
    labels : Path, optional
        Label table for a folder, relative to the TOML file.
    models : sequence of str or mapping
        Members: registry names or model specs as plain data (``[[models]]``), each trained with every seed. All have
        the same featurizers.
    fit : mapping
        Options of :class:`protgraph.train.FitConfig`, without the seed. A file ``start_from`` is relative to the TOML
        file.
    read : mapping
        Options of :class:`protgraph.structure.ReadOptions`.
    calibration : {"temperature", "platt", "isotonic", "linear", "none"}
        See :class:`protgraph.evaluation.CalibrationMap`.
    calibration_folds : int
        0: fit the calibration on the validation split, which chose the epoch, so that probabilities may be too high.
        2 or more: cross-fitting. The proteins of train and val are divided into folds by cluster; members trained
        without a fold predict it, and the calibration is fitted on all of these predictions. Each member is trained
        once more for each fold.
    calibration_seeds : sequence of int
        Seeds of the members that are trained for each fold; default: those of all members. Fewer take less time; their
        mean is less exact than that of all members, so the calibration is that of a weaker model.
    metrics : sequence of str
        Further metrics for the card, names of the registry ``protgraph.metrics``.
    evaluate : sequence of mapping
        Other datasets to evaluate on (``[[evaluate]]`` with the keys ``dataset`` and ``task``); results of their splits
        are on the card. Proteins of train and val with a homolog among them are left out; see
        :func:`protgraph.labels.add_evaluations`.
    float16 : bool
        Round weights to float16 before they are calibrated and evaluated.
    non_commercial : bool
        True if the training data forbid commercial use. A license with "NC" in its name counts anyway.
    input : str
        What the model expects, for the card.
    limits : sequence of str
        For the card.
    truth : str
        What makes a called residue right, in words, e.g. "it binds DNA"; for models with one yes/no label per residue.

    Raises
    ------
    OptionError
        A key is unknown or missing, or a value is not allowed; with the path of the key.

    Examples
    --------
    >>> recipe = Recipe.from_dict({"name": "ss", "summary": "Secondary structure.", "dataset": "pdb_core",
    ...                            "task": "secondary_structure", "models": ["gcn"], "fit": {"epochs": 2}})
    >>> recipe.seeds, recipe.calibration
    ((0,), 'temperature')
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    summary: str
    dataset: str
    task: str
    models: Annotated[tuple[str | dict[str, Any], ...], Field(min_length=1)]
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1)] = (0,)
    labels: Path | None = None
    fit: dict[str, Any] = {}
    read: dict[str, Any] = {}
    calibration: Literal["temperature", "platt", "isotonic", "linear", "none"] = "temperature"
    calibration_folds: Annotated[int, Field(ge=0)] = 0
    calibration_seeds: tuple[Seed, ...] = ()
    metrics: tuple[str, ...] = ()
    evaluate: tuple[EvaluationSet, ...] = ()
    float16: bool = True
    non_commercial: bool = False
    input: str = ""
    limits: tuple[str, ...] = ()
    truth: str = ""

    @model_validator(mode="after")
    def _check_options(self) -> Recipe:
        if "seed" in self.fit:
            raise ValueError("fit.seed: seeds are the list 'seeds'")
        if self.calibration_folds == 1:
            raise ValueError("calibration_folds: 1. Allowed: 0, or at least 2")
        if self.calibration_seeds and not self.calibration_folds:
            raise ValueError("calibration_seeds: only for cross-fitting. Set calibration_folds, or leave it out")
        unknown = sorted(set(self.fit) - set(FitConfig.__dataclass_fields__))
        if unknown:
            raise ValueError(f"fit: unknown {unknown[0]!r}")
        for name in self.metrics:
            if name not in registry.metrics:
                allowed = registry.metrics.names()
                raise ValueError(f"metrics: {name!r}.{suggest(name, allowed)} Allowed: {', '.join(allowed)}")
        self.config(0)
        ReadOptions.from_dict(self.read, where="read")
        return self

    def config(self, seed: int) -> FitConfig:
        """Return the training options of one seed."""
        return FitConfig(**self.fit, seed=seed)

    def data(self) -> Dataset:
        """Return the dataset."""
        read = ReadOptions.from_dict(self.read) if self.read else None
        return load_dataset(self.dataset, labels=self.labels, task=self.task, read=read)

    def task_cards(self) -> dict[str, TaskCard]:
        """Return the card of the task of each test split, for registered datasets."""
        sets = {"test": (self.dataset, self.task)}
        sets |= {f"{evaluation.dataset}_test": (evaluation.dataset, evaluation.task) for evaluation in self.evaluate}
        cards = {}
        for split, (name, task) in sets.items():
            if name in registry.datasets and task in (tasks := registry.datasets.create(name).card.tasks):
                cards[split] = tasks[task]
        return cards

    @classmethod
    def from_toml(cls, path: str | Path) -> Recipe:
        """Read a recipe from a TOML file."""
        path = Path(path)
        data = read_toml(path, "recipe")
        for key in ("dataset", "labels"):
            if isinstance(data.get(key), str) and (key == "labels" or data[key] not in registry.datasets):
                data[key] = str(path.parent / data[key])
        fit = data.get("fit", {})
        if isinstance(fit, dict) and (path.parent / str(fit.get("start_from"))).is_file():
            data["fit"] = fit | {"start_from": str(path.parent / fit["start_from"])}
        return cls.from_dict(data, where=str(path))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, where: str = "recipe") -> Recipe:
        """Build a recipe from plain data with the layout of the TOML file; ``where`` names it in errors."""
        try:
            return cls.model_validate(dict(data))
        except ValidationError as e:
            raise OptionError(f"{where}: {describe_errors(e, keys=tuple(cls.model_fields))}") from e
        except OptionError as e:
            raise OptionError(f"{where}: {e}") from e
