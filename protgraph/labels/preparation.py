"""Prepare a dataset: labeled graphs for one task and one feature plan, cached in graph stores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import torch

from protgraph import __version__
from protgraph.data.cache_key import code_digest, component_digest, digest
from protgraph.data.datasets.dataset import Dataset, TaskData, read_task
from protgraph.data.datasets.graph_list import GraphDataset
from protgraph.data.datasets.labels import (
    AbsentLabels,
    Labels,
    ResidueLabels,
    absent_residues_error,
    describe_left_out,
    wrong_types_error,
)
from protgraph.data.graph.protein_graph import ProteinGraph, labels_on_nodes
from protgraph.data.store.graph_store import GraphStore
from protgraph.data.store.split_folder import SplitFolder
from protgraph.errors import ComponentError, DatasetError, LabelError, LeakError, ProtgraphError, WiringError
from protgraph.failure import Failure
from protgraph.featurize.pipeline import dataset_requests, iter_graphs
from protgraph.featurize.plan import ALWAYS, FeaturePlan
from protgraph.featurize.result import GraphResult, count_notes, reader_notes
from protgraph.featurize.steps import ProteinRequest, precomputed_graph
from protgraph.labels.checks import check_training, empty_split_error, require_no_leak, with_failures
from protgraph.model.build import ProteinModel
from protgraph.process_memory import release_component_dictionary, release_memory
from protgraph.structure.io.transfer import cache_dir
from protgraph.structure.residues.loss_report import LossReport
from protgraph.structure.residues.residues import Residues
from protgraph.task.losses import known_labels
from protgraph.task.task import Task

__all__ = ["LabeledGraph", "Prepared", "prepare"]

_ATTRIBUTES = ("degree", "name", "residue_ids", "report")  # of a graph, which are no fields
CODE = ("protgraph.structure", "protgraph.data", "protgraph.featurize", "protgraph.task")


@dataclass(frozen=True, eq=False)
class Prepared:
    """Graphs of a dataset for one task and one list of featurizers.

    Parameters
    ----------
    data : TaskData
        What the dataset states about the task.
    splits : mapping of str to GraphStore
        Graphs of each split, labels in ``y``.
    failures : tuple of Failure
        Proteins that could not be used.
    one_chain : bool
        True if every training protein is a single chain.
    notes : tuple of str
        Messages for the user of the run that made the graphs, e.g. that features of a graph store are recomputed.
    """

    data: TaskData
    splits: Mapping[str, GraphStore]
    failures: tuple[Failure, ...]
    one_chain: bool
    notes: tuple[str, ...] = ()
    folder: SplitFolder | None = field(default=None, repr=False)  # a temporary one is kept until this is deleted

    @property
    def sizes(self) -> dict[str, tuple[int, int]]:
        """Number of proteins and residues of each split."""
        return {name: (len(store), store.num_residues) for name, store in self.splits.items()}


def prepare(
    dataset: Dataset,
    task: Task,
    plan: FeaturePlan,
    *,
    cache: str | Path | None = None,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
    needs_train: bool = True,
    trained: ProteinModel | None = None,
) -> Prepared:
    """Make the graphs of every split, or open those of an earlier run.

    Cached graphs are used only if labels, splits, structure files, read options, task, featurizers with their options,
    and all code (including plugins) are the same.

    Parameters
    ----------
    task : Task
        Its hidden information is removed before any featurizer runs.
    plan : FeaturePlan
        Featurizers; those of the expand stage have no effect on the graphs.
    cache : str or Path, optional
        Folder of prepared data; see :func:`protgraph.structure.io.cache_dir`.
    jobs : int
        Processes; see :func:`protgraph.featurize.iter_graphs`.
    progress : callable, optional
        Called with the number of finished proteins and their total.
    needs_train : bool
        False: the dataset may have no training split, for a model that is only evaluated.
    trained : ProteinModel, optional
        Model that is trained on the graphs: it is checked to be causal if the task requires that, and the splits to be
        fit for training and validation; notes are about the others.

    Returns
    -------
    Prepared
        Proteins that cannot be read or featurized are in ``failures``.

    Raises
    ------
    LabelError
        Labels name absent residues, or do not fit the target.
    DatasetError
        No protein of the training split (of any split, with ``needs_train=False``) could be prepared, or the dataset
        does not return what it has to.
    ComponentError
        A featurizer, ``derive`` of the task, or the dataset fails on every protein.
    WiringError
        Nodes are atoms, and the task has labels per pair or edge, or requires a causal model.
    LeakError
        A featurizer of the plan computes the label, or reproduces it on training proteins.
    """
    _check(plan, task)
    data = read_task(dataset, task.name)
    inputs = _Inputs(data, task, plan)
    folder = SplitFolder(_path_of(data, task, plan, cache_dir(cache)))
    stored = folder.open()
    notes: tuple[str, ...] = ()
    if stored is None:
        notes = _make(folder, inputs, jobs, progress)
        stored = folder.read()

    # checks of the graphs: splits that are empty, labels that a feature gives away, splits that cannot be trained on
    needed = "train" if needs_train else "test"
    with with_failures(stored.failures):
        if needed not in stored.splits:
            folder.remove()
            inputs.raise_component_error(stored.failures)
            raise empty_split_error(data, needed, stored.failures, stored.splits)
        if "train" in stored.splits:
            require_no_leak(task, plan, stored.splits["train"])
        if trained is not None:
            notes += check_training(trained, data, stored.splits, task, stored.failures)
    return Prepared(data, stored.splits, stored.failures, stored.one_chain, (*stored.notes, *notes), folder)


def _check(plan: FeaturePlan, task: Task) -> None:
    """Raise if a featurizer computes the label, or if the task is not defined for the nodes of the plan."""
    leaks = [n.name for n in plan.components if n.name in task.inputs.label_featurizers]
    if leaks:
        raise LeakError(
            f"task {task.name!r}: featurizer {leaks[0]!r} computes its label.\n"
            "Remove the featurizer from the model, or train the model on another task."
        )
    if plan.node_type != "residue" and (task.inputs.causal or task.target.level not in ("node", "graph")):
        raise WiringError(
            f"task {task.name!r} is defined on residues; the model has node_type {plan.node_type!r}.\n"
            "Models of atoms support tasks per residue or per protein that are not causal."
        )
    if plan.part and plan.needs_ligands and task.target.level != "graph":
        raise WiringError(
            f"task {task.name!r} has labels per residue; the model reads {plan.part} alone. Use a task with a label "
            "per protein, or let it read whole proteins: --set features.ligand_distance.pocket=0."
        )


def _path_of(data: TaskData, task: Task, plan: FeaturePlan, cache: Path) -> Path | None:
    """Return the folder of the graphs in the cache; its name has the digest of everything that they depend on.

    None for given graphs, and if a component has no source, whose changes are not seen.
    """
    functions = [function for function in (task.derive, task.restore, task.make_graph) if function is not None]
    featurizers = [featurizer for _, featurizer in (*plan.nodes, *plan.structure, *plan.edges)]
    code = [component_digest(component) for component in (*featurizers, *functions)]
    if isinstance(data.dataset.source, GraphDataset) or data.digest is None or None in code:
        return None
    masking = task.inputs
    of_task = [sorted(masking.hidden), masking.noise, masking.visible_types, asdict(task.stored)]
    key = digest(data.digest, of_task, plan.key(), code, __version__, code_digest(*CODE))
    return cache / "graphs" / f"{data.name or 'data'}-{task.name}-{key}".replace(os.sep, "_")


@dataclass(frozen=True)
class LabeledGraph:
    """Pipeline step of a task: labels from the whole protein, features from its visible part."""

    task: Task

    def __call__(self, residues: Residues, plan: FeaturePlan, request: ProteinRequest) -> ProteinGraph:
        """Return the graph with labels ``y``; ``request.data`` is the labels of the dataset, or None."""
        task, inputs, labels = self.task, self.task.inputs, request.data
        assert labels is None or isinstance(labels, Labels)
        if task.make_graph is not None:
            graph = task.make_graph(inputs.visible(residues, request.protein), plan, request)
            y = torch.from_numpy(task.labels(residues, labels))
            graph.name, graph.y, graph.y_level = request.protein, y, task.stored.level
            graph.validate()
            return graph
        if task.target.level == "graph":
            residues = _only_part(residues, plan)
        visible = inputs.visible(residues, request.protein) if inputs.hidden or inputs.noise else residues
        y = torch.from_numpy(task.labels(residues, labels, seen=visible, strict=False))
        if labels is None and not known_labels(y).any():
            why = "none of its residues has one" if residues.has_coordinates else "it has no coordinates"
            raise DatasetError(f"task {task.name!r} derives no label from {request.protein!r}: {why}")
        aatype = residues.aatype if inputs.visible_types else None
        graph = precomputed_graph(residues, visible, plan, request, aatype=aatype)
        graph.name, graph.y, graph.y_level = request.protein, labels_on_nodes(y, graph, task.stored), task.stored.level
        graph.validate()
        return graph


def _only_part(residues: Residues, plan: FeaturePlan) -> Residues:
    """Return the part of a protein that a model reads, as in predictions; the whole protein if it has several."""
    parts = plan.parts(residues)
    return parts[0] if len(parts) == 1 else residues


@dataclass(frozen=True)
class _Inputs:
    """Everything that the graphs are made of."""

    data: TaskData
    task: Task
    plan: FeaturePlan

    def results(
        self, jobs: int = 1, *, number: int | None = None, fatal: type[ProtgraphError] = LabelError
    ) -> Iterator[GraphResult | Failure | ProteinGraph]:
        """Make the graphs of all examples, or of the one of a number; those of a dataset of graphs are in its order.

        ``fatal``: errors that are raised instead of giving a failure.
        """
        dataset, plan = self.data.dataset, self.plan
        if isinstance(dataset.source, GraphDataset):
            return _select_graphs(dataset.source, self.data, self.task, plan)
        read = dataset.read_options.with_ligands(plan.needs_ligands)
        requests = dataset_requests(dataset, self.data.examples, read, labels=self.data.labels)
        if number is not None:
            requests = requests[number : number + 1]
        jobs = jobs if dataset.reads_files else 1
        return iter_graphs(requests, plan, read=read, step=LabeledGraph(self.task), jobs=jobs, fatal=(fatal,))

    def raise_component_error(self, failures: Sequence[Failure]) -> None:
        """Raise the error of a component that failed on every protein: the first graph is made again."""
        if failures and all(failure.error_type == ComponentError.__name__ for failure in failures):
            number = [example.id for example in self.data.examples].index(failures[0].protein)
            list(self.results(number=number, fatal=ComponentError))


def _make(
    folder: SplitFolder, inputs: _Inputs, jobs: int, progress: Callable[[int, int], None] | None
) -> tuple[str, ...]:
    """Write the graphs of each split in the dataset's order; return the messages for the user of this run.

    Graphs are written as they come: the memory does not grow with their number.
    """
    data, findings = inputs.data, _Findings()
    number = {example.id: i for i, example in enumerate(data.examples)}
    with folder.writer([example.split for example in data.examples]) as writer:
        for done, result in enumerate(inputs.results(jobs), 1):
            i = number[result.name if isinstance(result, ProteinGraph) else result.protein]
            writer.add(i, findings.accept(result, data.labels[i]))
            if progress is not None:
                progress(done, len(number))
        writer.close(data.splits, findings.failures, findings.notes_on_labels())
    release_component_dictionary()  # training does not read it
    release_memory()
    return (*count_notes(findings.notes), *reader_notes(findings.reports))


@dataclass
class _Findings:
    """Failures and messages of all proteins, and their labels per residue that do not fit the structures."""

    failures: list[Failure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    reports: dict[str, LossReport] = field(default_factory=dict)
    wrong: list[tuple[str, ResidueLabels, Residues, np.ndarray]] = field(default_factory=list)
    absent: list[AbsentLabels] = field(default_factory=list)
    left_out: list[AbsentLabels] = field(default_factory=list)
    shifts: dict[str, int] = field(default_factory=dict)

    def accept(self, result: GraphResult | Failure | ProteinGraph, labels: Labels | None) -> ProteinGraph | None:
        """Return the graph of a result, and keep what there is to tell about it; None if it cannot be used."""
        if isinstance(result, ProteinGraph):
            return result
        if isinstance(result, Failure):
            self.failures.append(result)
            return None
        if isinstance(labels, ResidueLabels) and not self._fit(labels, result.residues):
            return None
        self.notes += result.notes
        if result.residues.report.changes():
            self.reports[result.source] = result.residues.report
        return result.graph

    def _fit(self, labels: ResidueLabels, residues: Residues) -> bool:
        """Return True if the labels can be used, without those that are left out; otherwise keep the fault."""
        name = labels.name or residues.name
        is_absent, is_wrong = labels.absent(residues), labels.wrong_types(residues)
        if is_wrong.any():
            self.wrong.append((name, labels, residues, is_wrong))
            return False
        if not is_absent.any():
            return True
        if labels.leaves_out_absent or labels.is_whole_sequence(residues):
            self.left_out.append((name, labels, is_absent))
            return True
        self.absent.append((name, labels, is_absent))
        self.shifts |= {f"{name} {chain}": shift for chain, shift in labels.shifts(residues).items()}
        return False

    def notes_on_labels(self) -> list[str]:
        """Return the note on labels that were left out; raise :class:`LabelError` for faults."""
        if self.wrong:
            raise wrong_types_error(self.wrong)
        if self.absent:
            raise absent_residues_error(self.absent, self.shifts)
        return [describe_left_out(self.left_out)] if self.left_out else []


def _select_graphs(source: GraphDataset, data: TaskData, task: Task, plan: FeaturePlan) -> Iterator[ProteinGraph]:
    """Yield the labeled graphs of a dataset of graphs, with the fields that the model reads."""
    if task.inputs.hidden or task.inputs.noise:
        raise DatasetError(
            f"task {task.name!r} hides information before featurizers run, which is not possible with graphs. "
            "Give files, a folder or a graph store."
        )
    for example in data.examples:
        labeled, y = source.labeled_graph(example)
        fields = set(labeled.keys())
        usable = plan.precomputed & fields
        # The model names those of ALWAYS that it reads and the graph does not have.
        missing = plan.precomputed - usable - (set(ALWAYS) if usable - {"edge_index"} else set())
        if missing:
            raise DatasetError(
                f"graph {example.id!r} lacks the fields {', '.join(sorted(missing))}, which are features or inputs of "
                "the model. Make the graphs with its features: pg.build_graph(protein, pg.models.get(NAME).features), "
                "or give a model that reads the fields of your graphs: pg.ModelSpec(…, inputs={field: irreps})."
            )
        graph = ProteinGraph()
        for key in labeled.keys():  # noqa: SIM118
            if key in usable or key in (*_ATTRIBUTES, *plan.attributes):
                graph[key] = labeled[key]
        graph.name, graph.y, graph.y_level = example.id, y, task.stored.level
        graph.validate()
        yield graph
