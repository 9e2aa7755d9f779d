"""Trained models by name: a folder with weights, the recipe that reproduces them, and a card."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from protgraph.checkpoint.checkpoint_file import Checkpoint, load_checkpoint
from protgraph.errors import CheckpointError
from protgraph.registry import trained_models
from protgraph.validation import describe_errors

__all__ = [
    "CARD",
    "RECIPE",
    "WEIGHTS",
    "CallCounts",
    "CallRule",
    "Comparison",
    "ModelCard",
    "SplitResult",
    "TrainedModel",
    "find_card",
]

#: Files of the folder.
WEIGHTS, RECIPE, CARD = "model.safetensors", "recipe.toml", "card.json"


class SplitResult(BaseModel):
    """Results on one split."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    proteins: int  # proteins and labels: proteins with a known label, and known labels
    labels: int
    positives: list[int] = []  # labels of each class, or positive ones of each label
    clusters: int | None = None  # clusters of these proteins; None if each one is a cluster
    # value, and the limits of the 95 % bootstrap interval over proteins or clusters; None if undefined
    metrics: dict[str, tuple[float | None, float | None, float | None]] = {}
    # the same with one vote for each cluster, for metrics that take weights; empty if each protein is a cluster
    cluster_metrics: dict[str, tuple[float | None, float | None, float | None]] = {}
    # `ece_before`, `ece_after`, `brier_before` and `brier_after`; `ece_after_clusters` with one vote for each
    calibration: dict[str, float] = {}


class CallCounts(BaseModel):
    """Numbers of residues or variants of a split for which a call was made, and was right."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    called: int
    positives: int  # for which the call would be right
    correct: int  # called and positive

    @property
    def precision(self) -> float:
        """Fraction of the called ones that are positive; NaN if nothing is called."""
        return self.correct / self.called if self.called else math.nan

    @property
    def recall(self) -> float:
        """Fraction of the positive ones that are called; NaN if there is none."""
        return self.correct / self.positives if self.positives else math.nan


class CallRule(BaseModel):
    """Rule by which a value is called, e.g. "destabilizing", with thresholds chosen on the validation split."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str  # call, e.g. "destabilizing", or the label of a yes/no prediction.
    # least value that is called: a calibrated probability, or a value with the unit of the prediction
    at_least: float | None = None
    below: float | None = None  # values below it are called
    truth: str  # what makes a call right, in words: "it binds DNA", "the measured ΔΔG is at least 1 kcal/mol"
    splits: dict[str, CallCounts]  # numbers on each split

    def applies(self, value: float) -> bool:
        """Return True if a value is called; False for NaN."""
        is_above = self.at_least is None or value >= self.at_least
        is_below = self.below is None or value < self.below
        return is_above and is_below and not math.isnan(value)

    @property
    def range(self) -> str:
        """The values that are called, e.g. "at least 0.28", "below 0.02"."""
        if self.below is None:
            return f"at least {self.at_least:.2f}"
        return f"below {self.below:.2f}" if self.at_least is None else f"{self.at_least:.2f} to {self.below:.2f}"

    @property
    def sentence(self) -> str:
        """The rule in plain words, with precision and recall on validation and test."""
        measured = [
            f"{counts.precision:.0%} of the called are right and {counts.recall:.0%} of all such are called ({split})"
            for split, counts in self.splits.items()
        ]
        return f"{self.name}: value {self.range}, chosen on validation; right: {self.truth}. {'; '.join(measured)}"


class Comparison(BaseModel):
    """Value of another method on a split of the card: a trivial one (floor), or a published one (rival)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["floor", "rival"]
    method: str
    split: str
    metric: str
    value: float
    source: str = ""
    confirmed: bool = False  # computed, or read in the publication


class ModelCard(BaseModel):
    """Description of a trained model, written by :func:`protgraph.run_recipe`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    summary: str
    task: str
    dataset: str
    dataset_version: str
    license: str  # license of the training data
    non_commercial: bool = False  # True if that license forbids commercial use
    weights_note: str = ""  # what the license of the training data means for these weights
    left_out: str = ""  # proteins of the dataset that were not used because an evaluated dataset has homologs of them
    citation: str = ""
    reads: str = ""  # what the model reads of a file, as in training; it selects it itself (`Checkpoint.reads`)
    input: str = ""  # what the model was trained on and expects
    limits: list[str] = []
    members: list[str]  # model and seed of each member
    parameters: int  # of all members together
    calibration: str = ""
    splits: dict[str, SplitResult]
    versions: dict[str, str]  # versions at training
    seconds: float = 0.0  # duration of training
    calls: list[CallRule] = []  # calls that the model supports. Nothing is called without such a rule.
    comparisons: list[Comparison] = []  # floors and rivals on the splits of the card

    def call(self, name: str) -> CallRule | None:
        """Return the rule of a call, or None if the card does not support it."""
        return next((rule for rule in self.calls if rule.name == name), None)

    @property
    def license_note(self) -> str:
        """A sentence about the license if it limits the use of the weights, else ""."""
        if self.weights_note:
            return f"model {self.name!r}, trained on data under {self.license}: {self.weights_note}"
        if not self.non_commercial:
            return ""
        return f"model {self.name!r} was trained on data under {self.license}: non-commercial use only"


@dataclass(frozen=True)
class TrainedModel:
    """Trained model in a folder of :func:`protgraph.run_recipe`: the object behind a registered name.

    Parameters
    ----------
    folder : Path
        With ``model.safetensors``, ``recipe.toml`` and ``card.json``.
    check_code : bool
        Warn if the code of components is not that of training. False for weights that are released with the code, and
        tested with it.

    Examples
    --------
    >>> import protgraph as pg
    >>> pg.trained_models.get("secondary_structure").card().task
    'secondary_structure'
    """

    folder: Path
    check_code: bool = True

    def checkpoint(self) -> Checkpoint:
        """Load the weights.

        Raises :class:`CheckpointError` if the file is missing or damaged, or a component is not installed.
        """
        return load_checkpoint(self.folder / WEIGHTS, check_code=self.check_code)

    def card(self) -> ModelCard:
        """Read the card.

        Raises :class:`CheckpointError` if the file is missing or not a card.
        """
        path = self.folder / CARD
        try:
            return ModelCard.model_validate_json(path.read_text(encoding="utf-8"))
        except OSError as e:
            raise CheckpointError(f"trained model {str(self.folder)!r} has no {CARD}: {e.strerror or e}.") from e
        except ValidationError as e:
            raise CheckpointError(
                f"{path} is not a model card: {describe_errors(e, keys=ModelCard.model_fields)}"
            ) from e

    @property
    def recipe(self) -> Path:
        """File of the recipe."""
        return self.folder / RECIPE

    @property
    def doc(self) -> str:
        """Summary, input, results and limits, for ``protgraph info``."""
        card = self.card()
        lines = [card.summary, ""]
        lines += [f"Reads: {card.reads}"] if card.reads else []
        lines += [f"Input: {card.input}", f"Trained on {card.task} of {card.dataset}, {card.license}."]
        lines += [card.license_note] if card.license_note else []
        lines += [
            f"Members: {', '.join(card.members)}; {card.parameters} parameters",
            f"Calibration: {card.calibration}",
        ]
        for split, result in card.splits.items():
            lines += _result_lines(split, result)
        for other in card.comparisons:
            note = "" if other.confirmed else ", not confirmed"
            lines.append(f"{other.split:5} {other.kind} {other.method}: {other.metric} {other.value:.3f}{note}")
        lines += ["", "Calls:", *(f"- {rule.sentence}" for rule in card.calls)] if card.calls else []
        lines += ["", "Limits:", *(f"- {limit}" for limit in card.limits)] if card.limits else []
        return "\n".join([*lines, "", f"Reproduce: protgraph recipe {card.name} -o FOLDER"])


def find_card(checkpoint: str) -> ModelCard | None:
    """Return the card of a trained model by name, or that beside the weights of a recipe's folder; None without one.

    Raises :class:`CheckpointError` if the card is damaged.
    """
    if checkpoint in trained_models:
        return trained_models.get(checkpoint).card()
    weights = Path(checkpoint)
    has_card = weights.name == WEIGHTS and weights.with_name(CARD).is_file()
    return TrainedModel(weights.parent).card() if has_card else None


def _result_lines(split: str, result: SplitResult) -> list[str]:
    """Return the metrics of a split, and those with one vote per cluster, if there are any."""
    lines = [f"{split:5} {'  '.join(_metric_text(n, v) for n, v in result.metrics.items())}"]
    if result.cluster_metrics:
        values = "  ".join(_metric_text(n, v) for n, v in result.cluster_metrics.items())
        lines.append(f"{split:5} one vote per cluster ({result.clusters}): {values}")
    return lines


def _metric_text(name: str, values: tuple[float | None, float | None, float | None]) -> str:
    value, low, high = values
    if value is None:
        return f"{name} undefined"
    return f"{name} {value:.3f}" + (f" [{low:.3f}, {high:.3f}]" if low is not None and high is not None else "")
