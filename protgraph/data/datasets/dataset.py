"""Datasets: proteins with labels for named tasks, in splits; labels of all proteins as rows of a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from protgraph.data.datasets.card import DatasetCard, SplitCount, TaskCard, sum_counts
from protgraph.data.datasets.labels import (
    AbsentLabels,
    Labels,
    ProteinLabels,
    ResidueLabels,
    absent_residues_error,
    align,
    count_example,
)
from protgraph.errors import DatasetError, UnknownNameError, list_first, suggest
from protgraph.registry.component_fault import ComponentScope
from protgraph.structure.io.read_options import ReadOptions

if TYPE_CHECKING:
    from protgraph.data.datasets.description import DatasetDescription
    from protgraph.data.datasets.labeled_graphs import LabeledGraphs
    from protgraph.data.datasets.target import Target
    from protgraph.registry.component import ComponentSpec
    from protgraph.structure.residues.residues import Residues

__all__ = [
    "Dataset",
    "Example",
    "LabelRows",
    "TableDataset",
    "checked_examples",
    "checked_labels",
    "read_example",
    "require_card",
]

_SHOWN = 8  # tasks in a repr


@dataclass(frozen=True)
class Example:
    """One example of a dataset: chains of a structure file, or a record of a FASTA file. It becomes one graph.

    Parameters
    ----------
    id : str
        Unique identifier in the dataset, e.g. ``"1ubq_A"``.
    path : Path
        Structure or FASTA file; a text becomes a path.
    chains : tuple of str, optional
        Author chain ids; None: all protein chains.
    split : str
        Name of the split.
    record : str, optional
        Name of the record of a FASTA file; None for structure files.
    resolution : float, optional
        Resolution of the experiment, Å; None if it is unknown or not defined.
    """

    id: str
    path: Path
    chains: tuple[str, ...] | None
    split: str
    record: str | None = None
    resolution: float | None = None

    def __post_init__(self) -> None:
        chains = (self.chains,) if isinstance(self.chains, str) else self.chains
        object.__setattr__(self, "path", Path(self.path))
        object.__setattr__(self, "chains", None if chains is None else tuple(chains))


class Dataset(ABC):
    """Base class of datasets: proteins with labels for named tasks, in splits.

    Subclasses set ``card`` (:class:`~protgraph.data.datasets.card.DatasetCard`) and implement :meth:`examples` and
    :meth:`labels`. A registered class is created without arguments.
    """

    card: DatasetCard
    read_options: ReadOptions = ReadOptions()
    """Chains, model, alternate locations and assembly of every file."""

    @property
    def name(self) -> str:
        """Name of the dataset, from the card."""
        return self.card.name

    @property
    def version(self) -> str:
        """Version from the card; changes with proteins, labels or splits."""
        return self.card.version

    @property
    def reads_files(self) -> bool:
        """Whether the examples are files or graph stores that the pipeline reads, because :meth:`read` is inherited."""
        return type(self).read is Dataset.read

    @property
    def is_prepared(self) -> bool:
        """Whether the files of the proteins are there; False for a published source that has to be converted first."""
        return True

    @property
    def place(self) -> str:
        """Where the files are, in words."""
        return "with the package"

    @property
    def source(self) -> Dataset:
        """The dataset that reads the proteins: this one, unless it changes tasks or splits of another."""
        return self

    def links(self, example: Example) -> frozenset[str]:
        """Return the links of an example; examples with a common link are never in different folds.

        By default the digests of the sequences of its chains. Overridden by datasets that know sequence clusters.
        """
        from protgraph.data.datasets.fingerprint import chain_digests

        return frozenset(filter(None, chain_digests(self.read(example)).values()))

    def __repr__(self) -> str:
        card = getattr(self, "card", None)
        if card is None:  # not created by __init__ yet, or incomplete
            return f"<{type(self).__name__} without a card>"
        tasks = list_first(list(card.tasks), _SHOWN) or "no task"
        splits = ", ".join(f"{name} {count.proteins}" for name, count in card.splits.items())
        return f"{type(self).__name__}({card.name!r}, tasks: {tasks}; proteins: {splits})"

    def describe(self, task: str | None = None) -> DatasetDescription:
        """Return the contents of the dataset: tasks, splits and counts, from the card.

        Parameters
        ----------
        task : str, optional
            Describe this task alone.

        Examples
        --------
        >>> import protgraph as pg
        >>> print(pg.load_dataset("pdb_core").describe("interface"))  # doctest: +ELLIPSIS
        dataset pdb_core: 260 proteins, version 1.0
        ...
        """
        from protgraph.data.datasets.description import DatasetDescription

        card = self.card
        tasks = dict(card.tasks) if task is None else {task: self._task(task)}
        counts = card.splits if task is None else tasks[task].counts
        proteins = sum(count.proteins for count in counts.values())
        return DatasetDescription(card.name, card.version, proteins, card.splits, card.split_rule, tasks=tasks)

    def tasks(self) -> list[str]:
        """Return the names of the tasks."""
        return list(self.card.tasks)

    def target(self, task: str) -> Target:
        """Return the target of a task.

        Raises
        ------
        UnknownNameError
            The dataset does not have the task.
        """
        return self._task(task).target

    def splits(self, task: str) -> list[str]:
        """Return the splits that have examples of a task, in the order of the card."""
        used = {example.split for example in self.examples(task)}
        return [split for split in self.card.splits if split in used]

    @abstractmethod
    def examples(self, task: str, split: str | None = None) -> list[Example]:
        """Return the examples of a task, of all splits or of one, in a fixed order."""

    def all_examples(self) -> list[Example]:
        """Return the examples of all tasks, each once, in the order of the tasks."""
        return list({example.id: example for task in self.tasks() for example in self.examples(task)}.values())

    @abstractmethod
    def labels(self, task: str, example: Example) -> Labels | None:
        """Return the labels of an example, to be joined with :func:`align`; None if the task computes them."""

    def graphs(
        self,
        task: str,
        split: str | None = None,
        *,
        features: Sequence[ComponentSpec | str | Mapping[str, Any]] | None = None,
        node_type: str = "residue",
        cache: str | Path | None = None,
        jobs: int = 1,
    ) -> LabeledGraphs:
        """Return the labeled graphs of a task, for a training loop of your own.

        Each graph has the labels ``y`` in the form of the target (−1 or NaN: unknown), ``y_level``, ``name`` and
        ``split``. What the task hides is removed before features are computed. Graphs are prepared once, kept in the
        cache, and read from there when they are used; loaders of PyG take the result as a dataset.

        Parameters
        ----------
        split : str, optional
            Default: all splits.
        features : sequence of ComponentSpec, str or dict, optional
            Featurizers, e.g. those of a model: ``pg.models.get("gcn").features``. Default: ``("knn",)``; graphs that
            were given as graphs keep theirs.
        node_type : {"residue", "backbone", "atom"}
        cache : str or Path, optional
            Folder of prepared data.
        jobs : int
            Processes that read files.

        Returns
        -------
        LabeledGraphs
            Sequence of :class:`~protgraph.ProteinGraph` with the attributes ``target`` and ``failures``, the proteins
            that could not be used; a warning counts them.

        Examples
        --------
        >>> import protgraph as pg, torch
        >>> own = [pg.ProteinGraph(pos=torch.zeros(2, 3), y=torch.tensor([i]), split="train") for i in (0, 1)]
        >>> pg.load_dataset(own).graphs("y", "train")
        LabeledGraphs(2 graphs of task 'y')
        """
        # The pipeline is in a package above this one, which imports this module.
        pipeline = import_module("protgraph.labels.labeled_graphs")
        return pipeline.read_labeled_graphs(
            self, task, split, features=features, node_type=node_type, cache=cache, jobs=jobs
        )

    def read(self, example: Example) -> Residues:
        """Return the residues of one protein, nothing hidden."""
        return read_example(example, self.read_options)

    def check(self, task: str) -> dict[str, SplitCount]:
        """Read all structures, align their labels and count.

        Returns
        -------
        dict of str to SplitCount
            Proteins, residues and known labels of each split.

        Raises
        ------
        LabelError
            If labels refer to absent residues; one error for all files.
        """
        target = self.target(task)
        errors: list[AbsentLabels] = []
        counts: list[tuple[str, SplitCount]] = []
        for example in self.examples(task):
            residues, labels = self.read(example), self.labels(task, example)
            if isinstance(labels, ResidueLabels) and (absent := labels.absent(residues)).any():
                errors.append((labels.name or residues.name, labels, absent))
            if labels is None:
                count = SplitCount(1, len(residues))
            else:
                count = count_example(align(labels, residues, strict=False), target, len(residues))
            counts.append((example.split, count))
        if errors:
            raise absent_residues_error(errors)
        total = sum_counts(counts)
        return {split: total[split] for split in self.splits(task)}

    def _task(self, task: str) -> TaskCard:
        try:
            return self.card.tasks[task]
        except KeyError:
            raise UnknownNameError(
                f"dataset {self.name!r} has no task {task!r}.{suggest(task, self.card.tasks)} "
                f"Tasks: {', '.join(sorted(self.card.tasks))}."
            ) from None


def read_example(example: Example, read: ReadOptions) -> Residues:
    """Return the residues of an example, from its file or graph store."""
    from protgraph.data.store.graph_store import open_store
    from protgraph.data.store.store_description import is_store
    from protgraph.structure.io import open_source, proteins_of

    if is_store(example.path):
        store = open_store(example.path)
        number = store.number_of(example.record or "")
        if number is None:
            raise DatasetError(f"graph store {str(example.path)!r} has no protein of {example.record!r}.")
        residues = store.residues(number)
        residues = residues if read.chains is None else residues.chains(read.chains)
    else:
        proteins = proteins_of(open_source(example.path), read)
        (residues,) = [p.read() for p in proteins if example.record is None or p.record == example.record]
    return residues if example.chains is None else residues.chains(example.chains)


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
    first_of_protein: dict[object, Example] = {}
    for example in examples:
        if not isinstance(example, Example):
            raise DatasetError(f"{where}: examples returns a {type(example).__name__}. Allowed: protgraph.Example.")
        if example.id in ids:
            raise DatasetError(f"{where}: two examples have the id {example.id!r}. Ids are unique.")
        if example.split not in dataset.card.splits:
            splits = list_first(list(dataset.card.splits), 10)
            raise DatasetError(f"{where}: example {example.id!r} is in split {example.split!r}. On the card: {splits}.")
        ids.add(example.id)
        first = first_of_protein.setdefault((example.path, example.chains, example.record), example)
        _require_one_split(first, example, where)
    return examples


def _require_one_split(first: Example, example: Example, where: str) -> None:
    """Raise if two examples with the same chains of the same file are in different splits."""
    if first.split != example.split:
        raise DatasetError(
            f"{where}: examples {first.id!r} in split {first.split!r} and {example.id!r} in {example.split!r} are the "
            f"same protein, {example.path}. Keep it in one split, so that no model is tested on what it was trained on."
        )


def checked_labels(dataset: Dataset, task: str, examples: Sequence[Example]) -> list[Labels | None]:
    """Return the labels of examples."""
    labels_of_examples: list[Labels | None] = []
    for example in examples:
        with ComponentScope("dataset", dataset.name, dataset.labels, action="labels", protein=example.id):
            labels = dataset.labels(task, example)
        if labels is not None and not isinstance(labels, Labels):
            raise DatasetError(
                f"dataset {dataset.name!r}, task {task!r}: labels of {example.id!r} are a {type(labels).__name__}. "
                "Allowed: protgraph.ResidueLabels, protgraph.ProteinLabels, or None for labels that the task derives."
            )
        labels_of_examples.append(labels)
    return labels_of_examples


@dataclass(frozen=True, eq=False)
class LabelRows:
    """Labels of a task as rows of a table.

    Parameters
    ----------
    values : ndarray
        ``(T,)`` classes or ``(T, C)``, in the form of the target; −1 or NaN for unknown.
    rows : mapping of str to ndarray or slice
        Example id → its rows.
    keys : tuple of ndarray
        Chain, number and insertion code of the residue of each row, ``(T,)`` each; empty for labels per protein.
    letters : ndarray, optional
        ``(T,)`` str, the residue type that each row is for.
    leaves_out_absent : bool
        Leave out labels of residues that a structure does not have.
    """

    values: np.ndarray
    rows: Mapping[str, np.ndarray | slice]
    keys: tuple[np.ndarray, ...] = ()
    letters: np.ndarray | None = None
    leaves_out_absent: bool = False

    def of(self, example: Example) -> Labels:
        """Return the labels of an example."""
        rows = self.rows[example.id]
        if not self.keys:
            return ProteinLabels(self.values[rows][0])
        chain, number, ins_code = (key[rows] for key in self.keys)
        letters = None if self.letters is None else self.letters[rows]
        return ResidueLabels(
            chain,
            number,
            ins_code,
            self.values[rows],
            name=example.path.name,
            letters=letters,
            leaves_out_absent=self.leaves_out_absent,
        )


class TableDataset(Dataset):
    """Dataset of structures and a table of labels; subclasses implement :meth:`examples` and :meth:`label_rows`."""

    @abstractmethod
    def label_rows(self, task: str) -> LabelRows | None:
        """Return the labels of all examples of a task; None if the task computes them."""

    def labels(self, task: str, example: Example) -> Labels | None:
        """Return the labels of an example; None if the task computes them."""
        self._task(task)
        rows = self.label_rows(task)
        return None if rows is None else rows.of(example)
