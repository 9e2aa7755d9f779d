"""Checks of splits: splits without usable proteins or labels, proteins that are in several, and failures of a run."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import torch

from protgraph.data.datasets.dataset import Example
from protgraph.data.graph.protein_graph import CA
from protgraph.data.store.graph_store import GraphStore
from protgraph.errors import DatasetError, ProtgraphError
from protgraph.failure import Failure
from protgraph.structure.residues.alphabet import UNKNOWN
from protgraph.task.losses import known_labels
from protgraph.task.task import Task
from protgraph.wording import count_noun

__all__ = ["RANKING", "check_split_labels", "describe_split_overlap", "empty_split_error", "with_failures"]

_EXAMPLES = 2  # of shared proteins in a message

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
    name: str,
    task: str,
    split: str,
    examples: Sequence[Example],
    failures: Sequence[Failure],
    other_splits: Collection[str],
) -> DatasetError:
    """Return the error for a split that has no usable protein."""
    members = {example.id for example in examples if example.split == split}
    of_split = [failure for failure in failures if failure.protein in members]
    if of_split:
        first = str(of_split[0]).rstrip(".")
        return DatasetError(
            f"dataset {name!r}, task {task!r}: {count_noun(len(of_split), 'protein')} of split {split!r} could not be "
            f"used, and no other is in it. The first: {first}. Correct the files or the component."
        )
    only_in = f", only in {', '.join(other_splits)}" if other_splits else ""
    return DatasetError(
        f"dataset {name!r} has no protein in split {split!r} for task {task!r}{only_in}. {_USE[split]}: assign "
        f"proteins to {split!r}."
    )


def describe_split_overlap(dataset: str, splits: Mapping[str, GraphStore]) -> tuple[str, ...]:
    """Return a message if a protein is in more than one split, with two examples; else nothing.

    Proteins are the same if their residue types are. If a task hides all types, they are the same if the coordinates
    of their CA atoms are.
    """
    first: dict[bytes, tuple[str, str]] = {}
    shared: dict[bytes, str] = {}
    for split, store in splits.items():
        for i, name in enumerate(store.names):
            key = _identity(store, i)
            if key is None:
                continue
            other, where = first.setdefault(key, (name, split))
            if where != split:
                shared.setdefault(key, f"{other!r} ({where}) = {name!r} ({split})")
    if not shared:
        return ()
    examples = ", ".join(list(shared.values())[:_EXAMPLES])
    number = f"{count_noun(len(shared), 'sequence')} of dataset {dataset!r} {'is' if len(shared) == 1 else 'are'}"
    return (
        f"{number} in more than one split: {examples}. Scores on these splits are not those of unseen "
        "proteins. Assign each sequence to one split.",
    )


def _identity(store: GraphStore, i: int) -> bytes | None:
    """Return a digest of the residue types of a protein, or of the positions of its residues; None without both."""
    types, atoms = store.values("aatype", i), store.values("atom_type", i)
    residues = slice(None) if atoms is None else atoms == CA
    if types is not None and (types[residues] != UNKNOWN).any():
        return _digest(types[residues])
    pos = store.values("pos", i)
    if pos is None or not np.isfinite(pos[residues]).all():
        return None
    return _digest(pos[residues])


def _digest(values: np.ndarray) -> bytes:
    """Return 16 bytes, so that the comparison of many proteins does not keep their residues."""
    return hashlib.blake2b(np.ascontiguousarray(values).data, digest_size=16).digest()


RANKING = ("auprc", "auroc")
"""Metrics that are undefined without a positive and a negative label."""


def check_split_labels(dataset: str, splits: Mapping[str, GraphStore], task: Task) -> tuple[str, ...]:
    """Check that the monitored metric is defined on validation, and return notes on other splits.

    Every split needs a known label; yes/no labels ranked by the area under a curve need positives and negatives. Labels
    per pair, and those that the task draws at random during training, are not checked.
    """
    if task.target.level == "pair" or task.inputs.corrupt is not None:
        return ()
    notes = list(_check_known(dataset, splits, task))
    if task.target.kind != "multilabel" or task.monitor not in RANKING:
        return tuple(notes)
    for split, store in splits.items():
        y = torch.cat([graph.y for graph in store])
        positive, negative = (y == 1).sum(0), (y == 0).sum(0)  # (C,)
        if bool(((positive > 0) & (negative > 0)).any()):
            continue
        summary = (
            f"split {split!r} of dataset {dataset!r} has {count_noun(len(store), 'protein')} with "
            f"{count_noun(int(positive.sum()), 'positive label')} and {int(negative.sum())} negative"
        )
        if split in ("train", "val"):
            raise DatasetError(
                f"task {task.name!r}: {task.monitor} is undefined: {summary}. It needs both. Use --cv 5, another "
                "--seed, or a column 'split' that assigns proteins of both kinds to 'train' and 'val'."
            )
        notes.append(f"{task.monitor} is undefined on {split}: {summary}")
    return tuple(notes)


def _check_known(dataset: str, splits: Mapping[str, GraphStore], task: Task) -> tuple[str, ...]:
    """Return a note on test sets without a known label; raise for train and val."""
    notes = []
    for split, store in splits.items():
        if any(known_labels(graph.y).any() for graph in store):
            continue
        summary = (
            f"split {split!r} of dataset {dataset!r} has {count_noun(len(store), 'protein')} without a known label"
        )
        if split in ("train", "val"):
            raise DatasetError(
                f"task {task.name!r}: {summary}. Assign labeled proteins to 'train' and 'val' in the column 'split', "
                "or remove the column for a random split of the labeled proteins."
            )
        notes.append(f"no score on {split}: {summary}")
    return tuple(notes)
