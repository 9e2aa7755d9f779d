"""Trained models by name: a folder with weights, the recipe that reproduces them, and a card."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from protgraph.checkpoint.checkpoint_file import Checkpoint, load_checkpoint
from protgraph.errors import CheckpointError
from protgraph.validation import describe_errors

__all__ = ["CARD", "RECIPE", "WEIGHTS", "ModelCard", "SplitResult", "TrainedModel"]

#: Files of the folder.
WEIGHTS, RECIPE, CARD = "model.safetensors", "recipe.toml", "card.json"


class SplitResult(BaseModel):
    """Results on one split."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    proteins: int  # proteins and labels: proteins with a known label, and known labels
    labels: int
    positives: list[int] = []  # labels of each class, or positive ones of each label
    # value, and the limits of the 95 % bootstrap interval over proteins; None if undefined
    metrics: dict[str, tuple[float | None, float | None, float | None]] = {}
    calibration: dict[str, float] = {}  # ``ece_before``, ``ece_after``, ``brier_before`` and ``brier_after``


class ModelCard(BaseModel):
    """Description of a trained model, written by :func:`protgraph.recipes.run_recipe`.

    Parameters
    ----------
    license : str
        License of the training data.
    non_commercial : bool
        True if that license forbids commercial use.
    weights_note : str
        What the license of the training data means for these weights.
    left_out : str
        Proteins of the dataset that were not used because an evaluated dataset has homologs of them.
    reads : {"one chain", "all chains", "antibody domains"} or another part
        What the model reads of a file, as in training; it selects it itself (:attr:`Checkpoint.reads`).
    input : str
        What the model was trained on and expects.
    members : list of str
        Model and seed of each member.
    parameters : int
        Of all members together.
    versions : mapping of str to str
        Versions at training.
    seconds : float
        Duration of training.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    summary: str
    task: str
    dataset: str
    dataset_version: str
    license: str
    non_commercial: bool = False
    weights_note: str = ""
    left_out: str = ""
    citation: str = ""
    reads: str = ""
    input: str = ""
    limits: list[str] = []
    members: list[str]
    parameters: int
    calibration: str = ""
    splits: dict[str, SplitResult]
    versions: dict[str, str]
    seconds: float = 0.0

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
    """Trained model in a folder of :func:`protgraph.recipes.run_recipe`: the object behind a registered name.

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

        Raises
        ------
        CheckpointError
            The file is missing or damaged, or a component is not installed.
        """
        return load_checkpoint(self.folder / WEIGHTS, check_code=self.check_code)

    def card(self) -> ModelCard:
        """Read the card.

        Raises
        ------
        CheckpointError
            The file is missing or not a card.
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
            lines.append(f"{split:5} {'  '.join(_metric_text(n, v) for n, v in result.metrics.items())}")
        lines += ["", "Limits:", *(f"- {limit}" for limit in card.limits)] if card.limits else []
        return "\n".join([*lines, "", f"Reproduce: protgraph recipe {card.name} -o FOLDER"])


def _metric_text(name: str, values: tuple[float | None, float | None, float | None]) -> str:
    value, low, high = values
    if value is None:
        return f"{name} undefined"
    return f"{name} {value:.3f}" + (f" [{low:.3f}, {high:.3f}]" if low is not None and high is not None else "")
