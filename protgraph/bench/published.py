"""Scores of published methods, shown beside the models of a benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, FiniteFloat, StrictStr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from protgraph.data.datasets.card import ReferenceScore
    from protgraph.data.datasets.dataset import Dataset

__all__ = ["PublishedScore", "reference_scores"]


class PublishedScore(BaseModel):
    """A published score of a method on a tested split; ``[[published]]`` in a spec.

    Parameters
    ----------
    task, split, metric : str
        Where the score belongs.
    method : str
        Name of the method.
    value : float
    trained_on : str
        Training data, shown beside the score.
    source : str
        Reference, and how the value was obtained.
    confirmed : bool
        True: read in the source or computed; False: from memory.
    is_floor : bool
        True: a floor of the dataset card instead of a published method.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: StrictStr
    method: StrictStr
    metric: StrictStr
    value: FiniteFloat
    split: StrictStr = "test"
    trained_on: StrictStr = ""
    source: StrictStr = ""
    confirmed: bool = True
    is_floor: bool = False

    @classmethod
    def of_card(cls, task: str, score: ReferenceScore, *, is_floor: bool = False) -> PublishedScore:
        """Return a score of the card of a dataset."""
        return cls(task=task, is_floor=is_floor, **score.model_dump())

    @property
    def note(self) -> str:
        """What a reader has to know: training data, and whether the value was read in the source."""
        parts = [
            "floor of the card" if self.is_floor else "published",
            *([f"trained on {self.trained_on}"] if self.trained_on else []),
        ]
        return ", ".join([*parts, *([] if self.confirmed else ["not confirmed"])])

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON and TOML."""
        return self.model_dump()


def reference_scores(task: str, dataset: Dataset, given: Sequence[PublishedScore]) -> list[PublishedScore]:
    """Return the scores of a task: those given by a spec, then the published ones and the floors of the card."""
    card = dataset.card.tasks[task]
    parts = [row for row in given if row.task == task]
    parts += [PublishedScore.of_card(task, score) for score in card.published]
    return parts + [PublishedScore.of_card(task, score, is_floor=True) for score in card.floors]
