"""Datasets: proteins with labels for named tasks, in splits, and views of them in other splits or with other tasks."""

from __future__ import annotations

import copy
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from protgraph.data.cache_key import alignment_stamps, component_digest, digest, stamps
from protgraph.data.datasets.card import DatasetCard, SplitCount, TaskCard, count_example, sum_counts
from protgraph.data.datasets.labels import (
    AbsentLabels,
    Labels,
    ProteinLabels,
    ResidueLabels,
    absent_residues_error,
    align,
)
from protgraph.data.store.store_description import is_store, store_index
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
    "DatasetView",
    "Example",
    "LabelRows",
    "Origin",
    "TableDataset",
    "TaskData",
    "add_derived_task",
    "card_of_view",
    "content_version",
    "held_out",
    "read_example",
    "read_examples",
    "read_task",
    "require_card",
    "resplit",
    "with_read_options",
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


def with_read_options(dataset: Dataset, read: ReadOptions) -> Dataset:
    """Return a dataset that reads its files with other options."""
    if read == dataset.read_options:
        return dataset
    if not dataset.reads_files and replace(read, alignment=None) != ReadOptions():
        raise DatasetError(f"dataset {dataset.name!r} reads its proteins itself; read options do not apply: {read}")
    changed = copy.copy(dataset)
    changed.read_options = read
    return changed


@dataclass(frozen=True, eq=False)
class TaskData:
    """Everything that a dataset states about one task, checked; the proteins themselves are not read yet."""

    dataset: Dataset  # reads the proteins, or leaves that to the pipeline
    task: str
    splits: tuple[str, ...]  # in the order of the card
    examples: Sequence[Example]
    labels: Sequence[Labels | None]  # one per example; None if the task derives them

    @property
    def name(self) -> str:
        """Name of the dataset."""
        return self.dataset.name

    @property
    def version(self) -> str:
        """Version of the dataset."""
        return self.dataset.version

    @cached_property
    def digest(self) -> str | None:
        """Digest of examples, labels, files, read options and code; None if the code has no source to compare."""
        dataset = self.dataset
        code = component_digest(dataset.source)
        if code is None:
            return None
        proteins = [(e.id, e.chains, e.split, e.record) for e in self.examples]
        paths = dict.fromkeys(example.path for example in self.examples)
        files = stamps(store_index(path) if is_store(path) else path for path in paths)
        read = [dataset.read_options.to_dict(), alignment_stamps(dataset.read_options)]
        stated = [dataset.name, dataset.version, self.task, proteins, files, read, code]
        return digest(stated, *(b"" if labels is None else labels.content() for labels in self.labels))

    def labels_of(self, examples: Sequence[Example]) -> list[Labels | None]:
        """Return the labels of some of the examples."""
        by_id = {example.id: labels for example, labels in zip(self.examples, self.labels, strict=True)}
        return [by_id[example.id] for example in examples]

    def clusters(self, names: Sequence[str]) -> tuple[int, ...]:
        """Return the cluster of each named example: those with common links (:meth:`Dataset.links`) share one."""
        from protgraph.data.datasets.splits import linked_groups  # imports scipy

        examples = {example.id: example for example in self.examples}
        return tuple(linked_groups([self.dataset.links(examples[name]) for name in names]))


def read_task(dataset: Dataset, task: str) -> TaskData:
    """Return the examples of a task with their labels; raise if the code of the dataset fails or contradicts itself."""
    examples = read_examples(dataset, task)
    scope = ComponentScope("dataset", dataset.name, dataset.examples, action="examples")
    labels: list[Labels | None] = []
    for example in examples:
        with scope.of(dataset.labels, action="labels", protein=example.id):
            labels.append(dataset.labels(task, example))
        if not isinstance(labels[-1], Labels | None):
            raise DatasetError(
                f"dataset {dataset.name!r}, task {task!r}: labels of {example.id!r} are a {type(labels[-1]).__name__}. "
                "Allowed: protgraph.ResidueLabels, protgraph.ProteinLabels, or None for labels that the task derives."
            )
    used = {example.split for example in examples}
    splits = tuple(split for split in dataset.card.splits if split in used)
    return TaskData(dataset, task, splits, examples, labels)


def read_examples(dataset: Dataset, task: str) -> list[Example]:
    """Return the examples of a task: ids and proteins are unique, and splits on the card; see :func:`read_task`."""
    require_card(dataset)
    where = f"dataset {dataset.name!r}, task {task!r}"
    with ComponentScope("dataset", dataset.name, dataset.examples, action="examples"):
        examples = list(dataset.examples(task))
    ids: set[str] = set()
    first_of_protein: dict[object, Example] = {}
    for example in examples:
        if not isinstance(example, Example):
            raise DatasetError(f"{where}: examples returns a {type(example).__name__}. Allowed: protgraph.Example.")
        if example.id in ids:
            raise DatasetError(f"{where}: two examples have the id {example.id!r}. Ids are unique.")
        if example.split not in dataset.card.splits:
            listed = ", ".join(dataset.card.splits)
            raise DatasetError(f"{where}: example {example.id!r} is in split {example.split!r}. On the card: {listed}.")
        ids.add(example.id)
        first = first_of_protein.setdefault((example.path, example.chains, example.record), example)
        if first.split != example.split:
            raise DatasetError(
                f"{where}: examples {first.id!r} in split {first.split!r} and {example.id!r} in {example.split!r} are "
                f"the same protein, {example.path}. Keep it in one split, so that no model is tested on what it was "
                "trained on."
            )
    return examples


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


# --- views: other splits, one more task, or examples of other datasets -----------------------------------------------


class Origin(NamedTuple):
    """Dataset, task and example that an example of a view comes from."""

    dataset: Dataset
    task: str
    example: Example


class DatasetView(Dataset):
    """A dataset in which one task has other examples; another dataset reads the proteins.

    ``task``: task whose examples are given. Other tasks of the card are those of the base. ``origins``: example id to
    its origin, of examples of other datasets. ``is_derived``: the task computes its labels.
    """

    def __init__(
        self,
        base: Dataset,
        task: str,
        examples: Sequence[Example],
        card: DatasetCard,
        *,
        origins: Mapping[str, Origin] = MappingProxyType({}),
        is_derived: bool = False,
    ) -> None:
        self.base, self.card, self.read_options = base, card, base.read_options
        self._viewed, self._examples = task, list(examples)
        self._origins, self._is_derived = origins, is_derived

    @property
    def source(self) -> Dataset:
        """The dataset that reads the proteins."""
        return self.base.source

    @property
    def reads_files(self) -> bool:
        """Whether the base dataset leaves reading to the pipeline."""
        return self.base.reads_files

    def examples(self, task: str, split: str | None = None) -> list[Example]:
        """Return the examples of a task, of all splits or of one."""
        self._task(task)
        if task != self._viewed:
            return self.base.examples(task, split)
        return [example for example in self._examples if split in (None, example.split)]

    def labels(self, task: str, example: Example) -> Labels | None:
        """Return the labels of an example, from its own dataset; None if the task computes them."""
        if self._is_derived and task == self._viewed:
            return None
        origin = self._origins.get(example.id)
        if origin is not None:
            return origin.dataset.labels(origin.task, origin.example)
        return self.base.labels(task, example)

    def links(self, example: Example) -> frozenset[str]:
        """Return the links of an example in its own dataset."""
        origin = self._origins.get(example.id)
        return self.base.links(example) if origin is None else origin.dataset.links(origin.example)

    def read(self, example: Example) -> Residues:
        """Return the residues of one protein, read by the base dataset."""
        return self.base.read(example)


def resplit(base: Dataset, task: str, splits: Mapping[str, str], rule: str) -> DatasetView:
    """Return the examples of one task of a dataset, in other splits.

    The version depends on that of the dataset and on the splits.
    """
    examples = [replace(example, split=splits[example.id]) for example in base.examples(task) if example.id in splits]
    version = content_version((base.version, sorted(splits.items())))
    card = card_of_view(base, task, splits.values(), version=version, first=("train", "val", "test"))
    return DatasetView(base, task, examples, replace(card, split_rule=rule))


def add_derived_task(base: Dataset, task: str, target: Target) -> DatasetView:
    """Return a dataset with one more task: all its proteins in their splits, without labels.

    The examples are those of all other tasks, each once. Name, version and files are those of the dataset.

    Parameters
    ----------
    task : str
        Name of the task, which computes its labels.

    Raises
    ------
    DatasetError
        An example is in different splits for different tasks.
    """
    examples = _examples_of_all_tasks(base)
    counts = _count_splits(example.split for example in examples)
    added = TaskCard(target, "derived by the task", "all proteins of the other tasks", counts)
    card = replace(base.card, tasks=MappingProxyType({**base.card.tasks, task: added}))
    return DatasetView(base, task, examples, card, is_derived=True)


def card_of_view(
    base: Dataset, task: str, splits: Iterable[str], *, version: str, first: Sequence[str] = ()
) -> DatasetCard:
    """Return the card of a dataset with one task and the splits of its examples, those of ``first`` before others."""
    counts = _count_splits(splits, first=first)
    tasks = MappingProxyType({task: replace(base.card.tasks[task], counts=counts)})
    return replace(base.card, version=version, splits=counts, tasks=tasks)


def content_version(content: object) -> str:
    """Return a version that changes with plain data."""
    return hashlib.sha256(repr(content).encode()).hexdigest()[:12]


def _count_splits(splits: Iterable[str], *, first: Sequence[str] = ()) -> Mapping[str, SplitCount]:
    names = list(splits)
    order = [name for name in dict.fromkeys([*first, *names]) if name in names]
    return MappingProxyType({name: SplitCount(names.count(name)) for name in order})


def _examples_of_all_tasks(dataset: Dataset) -> list[Example]:
    """Return the examples of all tasks, each once, in the order of the splits and tasks."""
    examples: dict[str, Example] = {}
    for task in dataset.tasks():
        for example in dataset.examples(task):
            known = examples.setdefault(example.id, example)
            if known.split != example.split:
                raise DatasetError(
                    f"dataset {dataset.name!r}: example {example.id!r} is in split {known.split!r} of one task and in "
                    f"{example.split!r} of another. A task that is not on the card needs one split for each example."
                )
    order = {split: number for number, split in enumerate(dataset.card.splits)}
    return sorted(examples.values(), key=lambda example: order[example.split])


def held_out(dataset: Dataset, task: str) -> Dataset:
    """Return a dataset without its training split, in which a model that is not trained has nothing to read."""
    splits = {example.id: example.split for example in dataset.examples(task) if example.split != "train"}
    return resplit(dataset, task, splits, f"{dataset.card.split_rule}; without train")
