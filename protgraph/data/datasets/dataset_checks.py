"""Check what a dataset declares and returns, before its proteins are read; errors name the dataset and the example."""

from __future__ import annotations

from collections.abc import Sequence

from protgraph.data.datasets.card import DatasetCard
from protgraph.data.datasets.dataset import Dataset, Example
from protgraph.data.datasets.labels import Labels
from protgraph.errors import DatasetError, list_first
from protgraph.registry.component_fault import ComponentScope

__all__ = ["checked_examples", "checked_labels", "require_card"]


def require_card(dataset: Dataset, *, name: str = "") -> None:
    """Raise if a dataset has no card."""
    card = getattr(dataset, "card", None)
    if isinstance(card, DatasetCard):
        return
    found = "no card" if card is None else f"a card of type {type(card).__name__}"
    raise DatasetError(
        f"dataset {name or type(dataset).__name__!r} has {found}. Set self.card in __init__: a protgraph.DatasetCard, "
        "or the result of protgraph.data.load_card(path)."
    )


def checked_examples(dataset: Dataset, task: str) -> list[Example]:
    """Return the examples of a task."""
    with ComponentScope("dataset", dataset.name, dataset.examples, action="examples"):
        examples = list(dataset.examples(task))
    where = f"dataset {dataset.name!r}, task {task!r}"
    ids: set[str] = set()
    places: dict[object, Example] = {}
    for example in examples:
        if not isinstance(example, Example):
            raise DatasetError(f"{where}: examples returns a {type(example).__name__}. Allowed: protgraph.Example.")
        if example.id in ids:
            raise DatasetError(f"{where}: two examples have the id {example.id!r}. Ids are unique.")
        if example.split not in dataset.card.splits:
            splits = list_first(list(dataset.card.splits), 10)
            raise DatasetError(f"{where}: example {example.id!r} is in split {example.split!r}. On the card: {splits}.")
        ids.add(example.id)
        _require_one_split(places, example, where)
    return examples


def _require_one_split(places: dict[object, Example], example: Example, where: str) -> None:
    """Raise if another split has the same chains of the same file."""
    first = places.setdefault((example.path, example.chains, example.record), example)
    if first.split != example.split:
        raise DatasetError(
            f"{where}: examples {first.id!r} in split {first.split!r} and {example.id!r} in {example.split!r} are the "
            f"same protein, {example.path}. Keep it in one split, so that no model is tested on what it was trained on."
        )


def checked_labels(dataset: Dataset, task: str, examples: Sequence[Example]) -> list[Labels | None]:
    """Return the labels of examples."""
    found: list[Labels | None] = []
    for example in examples:
        with ComponentScope("dataset", dataset.name, dataset.labels, action="labels", protein=example.id):
            labels = dataset.labels(task, example)
        if labels is not None and not isinstance(labels, Labels):
            raise DatasetError(
                f"dataset {dataset.name!r}, task {task!r}: labels of {example.id!r} are a {type(labels).__name__}. "
                "Allowed: protgraph.ResidueLabels, protgraph.ProteinLabels, or None for labels that the task derives."
            )
        found.append(labels)
    return found
