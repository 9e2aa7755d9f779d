"""Scores of published methods, shown beside the models of a benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import FiniteFloat

from protgraph.data.datasets.card import ReferenceScore

if TYPE_CHECKING:
    from protgraph.data.datasets.dataset import Dataset

__all__ = ["PublishedScore", "reference_scores"]


class PublishedScore(ReferenceScore):
    """A published score of a method on a tested split; ``[[published]]`` in a spec.

    ``task``: task of the score; its other fields are those of :class:`protgraph.data.datasets.card.ReferenceScore`.
    ``is_floor``: True: a floor of the dataset card instead of a published method.
    """

    task: str
    value: FiniteFloat
    confirmed: bool = True
    is_floor: bool = False

    @property
    def note(self) -> str:
        """What a reader has to know: training data, and whether the value was read in the source."""
        details = ["floor of the card" if self.is_floor else "published"]
        if self.trained_on:
            details.append(f"trained on {self.trained_on}")
        if not self.confirmed:
            details.append("not confirmed")
        return ", ".join(details)


def reference_scores(task: str, dataset: Dataset, of_spec: Sequence[PublishedScore]) -> list[PublishedScore]:
    """Return the scores of a task: those of a spec, then the published ones and the floors of the card."""
    card = dataset.card.tasks[task]
    scores = [score for score in of_spec if score.task == task]
    for is_floor, of_card in ((False, card.published), (True, card.floors)):
        scores += [PublishedScore(task=task, is_floor=is_floor, **score.model_dump()) for score in of_card]
    return scores
