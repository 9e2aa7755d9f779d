"""Error for a split without usable proteins, and the failures of a run that ends with an error."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from protgraph.data.datasets.dataset import Example
from protgraph.errors import DatasetError, ProtgraphError
from protgraph.failure import Failure
from protgraph.wording import count_noun

__all__ = ["empty_split_error", "with_failures"]

_USE = {
    "train": "The model is trained on it",
    "val": "The best epoch is chosen on it",
    "test": "The model is tested on it",
}


@contextmanager
def with_failures(failures: Sequence[Failure]) -> Iterator[None]:
    """Attach the proteins that could not be used to an error of protgraph, as its attribute ``failures``."""
    try:
        yield
    except ProtgraphError as e:
        e.failures = tuple(failures)
        raise


def empty_split_error(
    name: str, task: str, split: str, examples: Sequence[Example], failures: Sequence[Failure], others: Collection[str]
) -> DatasetError:
    """Return the error for a split that has no usable protein."""
    members = {example.id for example in examples if example.split == split}
    own = [failure for failure in failures if failure.protein in members]
    if own:
        first = str(own[0]).rstrip(".")
        return DatasetError(
            f"dataset {name!r}, task {task!r}: {count_noun(len(own), 'protein')} of split {split!r} could not be used, "
            f"and no other is in it. The first: {first}. Correct the files or the component."
        )
    found = f", only in {', '.join(others)}" if others else ""
    return DatasetError(
        f"dataset {name!r} has no protein in split {split!r} for task {task!r}{found}. {_USE[split]}: assign proteins "
        f"to {split!r}."
    )
