"""Where proteins and their labels come from: :class:`Dataset`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from protgraph.data.datasets.card import DatasetCard, SplitCount, TaskCard
from protgraph.data.datasets.labels import Labels, ProteinLabels, ResidueLabels, absent_residues, align, count_labels
from protgraph.errors import UnknownNameError, suggest
from protgraph.structure.io.read_options import ReadOptions

if TYPE_CHECKING:
    from protgraph.data.datasets.target import Target
    from protgraph.structure.residues.residues import Residues

__all__ = ["Dataset", "Example", "Labels", "ProteinLabels", "ResidueLabels", "align"]


@dataclass(frozen=True)
class Example:
    """One protein to be one graph: a structure file, the chains of it, and the split that they are in.

    It may be a record of a FASTA file instead.

    Parameters
    ----------
    id : str
        Unique in the dataset: ``"1ubq_A"``.
    path : Path
        Structure file.
    chains : tuple of str, optional
        Author chain ids that make the protein; None takes every protein chain.
    split : str
        Name of its split.
    record : str, optional
        Name of the record, where the file is FASTA; None where it is a structure.
    """

    id: str
    path: Path
    chains: tuple[str, ...] | None
    split: str
    record: str | None = None


class Dataset(ABC):
    """Proteins with labels for named tasks, in splits; see :class:`~protgraph.data.datasets.card.DatasetCard`."""

    card: DatasetCard
    read_options: ReadOptions = ReadOptions()
    """Chains, model, alternate locations and assembly of every file."""

    @property
    def name(self) -> str:
        """Name on the card."""
        return self.card.name

    @property
    def version(self) -> str:
        """Version on the card; a change of proteins, labels or splits changes it."""
        return self.card.version

    def tasks(self) -> list[str]:
        """Names of the tasks that it has labels for."""
        return list(self.card.tasks)

    def target(self, task: str) -> Target:
        """What the task's labels are."""
        return self._task(task).target

    def splits(self, task: str) -> list[str]:
        """The splits that hold examples of the task, in the card's order."""
        held = {example.split for example in self.examples(task)}
        return [split for split in self.card.splits if split in held]

    @abstractmethod
    def examples(self, task: str, split: str | None = None) -> list[Example]:
        """The task's proteins, all or those of one split, in a fixed order."""

    @abstractmethod
    def labels(self, task: str, example: Example) -> Labels | None:
        """The labels of one protein, to be joined with :func:`align`; None where the task derives them itself."""

    def read(self, example: Example) -> Residues:
        """Return the residues of one protein, nothing hidden."""
        from protgraph.data.store.graph_store import GraphStore, is_store
        from protgraph.structure.io import open_source, proteins_of

        if is_store(example.path):
            store = GraphStore(example.path)
            residues = store.residues(store.sources.index(example.record))
            residues = residues if self.read_options.chains is None else residues.chains(self.read_options.chains)
        else:
            proteins = proteins_of(open_source(example.path), self.read_options)
            (residues,) = [p.read() for p in proteins if example.record is None or p.record == example.record]
        return residues if example.chains is None else residues.chains(example.chains)

    def check(self, task: str) -> dict[str, SplitCount]:
        """Read every structure, join its labels, and count.

        Returns
        -------
        dict of str to SplitCount
            Proteins, residues and known labels of each split.

        Raises
        ------
        LabelError
            One for all labels of absent residues, in whichever files they are.
        """
        target, found = self.target(task), []
        counts: dict[str, SplitCount] = {}
        for example in self.examples(task):
            residues, labels = self.read(example), self.labels(task, example)
            if isinstance(labels, ResidueLabels) and (absent := labels.absent(residues)).any():
                found.append((labels.name or residues.name, labels, absent))
            if labels is None:
                one = SplitCount(1, len(residues))
            else:
                one = count_labels(align(labels, residues, strict=False), target, len(residues))
            before = counts.get(example.split)
            counts[example.split] = one if before is None else before + one
        if found:
            raise absent_residues(found)
        return {split: counts[split] for split in self.splits(task)}

    def _task(self, task: str) -> TaskCard:
        try:
            return self.card.tasks[task]
        except KeyError:
            raise UnknownNameError(
                f"dataset {self.name!r} has no task {task!r}.{suggest(task, self.card.tasks)} "
                f"It has {', '.join(sorted(self.card.tasks))}."
            ) from None
