"""Prepare a dataset: labeled graphs for one task and one feature plan, cached in graph stores."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
import torch

from protgraph import __version__
from protgraph.data.cache_key import alignment_stamps, code_digest, component_digest, digest, stamps
from protgraph.data.datasets.dataset import Dataset, Example, checked_examples, checked_labels, require_card
from protgraph.data.datasets.graph_list import GraphDataset
from protgraph.data.datasets.labels import (
    AbsentLabels,
    Labels,
    ResidueLabels,
    absent_residues_error,
    describe_left_out,
    wrong_types_error,
)
from protgraph.data.graph.protein_graph import ProteinGraph, labels_on_nodes, set_attributes
from protgraph.data.store.graph_store import GraphStore
from protgraph.data.store.store_description import is_store, store_index
from protgraph.data.store.store_writer import ShardWriter, write_store
from protgraph.errors import ComponentError, DatasetError, LabelError, LeakError, WiringError
from protgraph.failure import Failure
from protgraph.featurize.pipeline import dataset_requests, iter_graphs
from protgraph.featurize.plan import ALWAYS, FeaturePlan
from protgraph.featurize.result import count_notes, reader_notes
from protgraph.featurize.steps import ProteinRequest, precomputed_graph
from protgraph.file_io import atomic_write
from protgraph.labels.leaks import require_no_leak
from protgraph.labels.split_checks import empty_split_error, with_failures
from protgraph.process_memory import release_component_dictionary, release_memory
from protgraph.structure.io.read_options import ReadOptions
from protgraph.structure.io.transfer import cache_dir
from protgraph.structure.residues.loss_report import LossReport
from protgraph.structure.residues.residues import Residues
from protgraph.task.losses import known_labels
from protgraph.task.task import Task

__all__ = ["LabeledGraph", "Prepared", "SplitWriter", "is_one_chain", "prepare"]

MANIFEST = "prepared.json"
_ATTRIBUTES = ("degree", "name", "residue_ids", "report")  # of a graph, which are no fields
CODE = ("protgraph.structure", "protgraph.data", "protgraph.featurize", "protgraph.task")


@dataclass(frozen=True, eq=False)
class Prepared:
    """Graphs of a dataset for one task and one list of featurizers.

    Parameters
    ----------
    splits : mapping of str to GraphStore
        Graphs of each split, labels in ``y``.
    failures : tuple of Failure
        Proteins that could not be used.
    one_chain : bool
        True if every training protein is a single chain.
    notes : tuple of str
        Messages for the user of the run that made the graphs, e.g. that features of a graph store are recomputed.
    """

    splits: Mapping[str, GraphStore]
    failures: tuple[Failure, ...]
    one_chain: bool
    notes: tuple[str, ...] = ()
    temporary: object = field(default=None, repr=False)  # keeps a temporary folder until this is deleted

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
    cache = cache_dir(cache)
    require_card(dataset)
    if isinstance(dataset.source, GraphDataset):
        graphs = _select_graphs(dataset, task, plan)
        written = _write_given(graphs)
        if "train" in written.splits:
            require_no_leak(task, plan, written.splits["train"])
        return written
    data = _read_task_data(dataset, task.name)
    used: list[object] = [featurizer for _, featurizer in (*plan.nodes, *plan.structure, *plan.edges)]
    of_task = (task.derive, task.restore, task.make_graph)
    used += [dataset.source, *(function for function in of_task if function is not None)]
    code = [component_digest(one) for one in used]
    temporary: tempfile.TemporaryDirectory[str] | None = None
    if None in code:  # without source, the next run cannot detect a change
        temporary = tempfile.TemporaryDirectory(prefix="protgraph-")
        folder = Path(temporary.name) / "graphs"
    else:
        key = digest(_key(data, task, plan), *map(_label_bytes, data.labels), code)
        folder = cache / "graphs" / f"{data.name or 'data'}-{task.name}-{key}".replace(os.sep, "_")
    prepared = _open(folder)
    if prepared is None:
        read = data.read.with_ligands(plan.needs_ligands)
        requests = dataset_requests(dataset, data.examples, read, labels=data.labels)
        inputs = _Inputs(data, requests, read, task, plan, "train" if needs_train else "test")
        notes = _make(folder, inputs, jobs, progress)
        release_component_dictionary()  # training does not read it
        release_memory()
        made = _read_prepared(folder)
        prepared = replace(made, notes=(*made.notes, *notes), temporary=temporary)
    if "train" in prepared.splits:
        require_no_leak(task, plan, prepared.splits["train"])
    return prepared


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


def _key(data: _TaskData, task: Task, plan: FeaturePlan) -> list[object]:
    """Return everything that the graphs depend on besides labels and the code of components."""
    proteins = [(e.id, e.chains, e.split, e.record) for e in data.examples]
    inputs = (task.name, sorted(task.inputs.hidden), task.inputs.noise, task.inputs.visible_types, asdict(task.stored))
    paths = dict.fromkeys(example.path for example in data.examples)
    files = stamps(store_index(path) if is_store(path) else path for path in paths)
    code = code_digest(*CODE)
    read = [data.read.to_dict(), alignment_stamps(data.read)]
    return [data.name, data.version, inputs, plan.key(), proteins, files, read, __version__, code]


def _label_bytes(labels: Labels | None) -> bytes:
    if labels is None:
        return b""
    arrays = [np.asarray(value) for value in vars(labels).values()]
    return b"".join(a.tobytes() if a.dtype != object else repr(a.tolist()).encode() for a in arrays)


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

    data: _TaskData
    requests: Sequence[ProteinRequest]  # one per example, with its labels
    read: ReadOptions  # those of the dataset, with ligands if the plan needs them
    task: Task
    plan: FeaturePlan
    needed: str  # split without which nothing is written


def _make(folder: Path, inputs: _Inputs, jobs: int, progress: Callable[[int, int], None] | None) -> tuple[str, ...]:
    """Write the graphs of each split, atomically and in the dataset's order; return the messages for the user.

    The first of two writers wins. Graphs are written as they come: the memory does not grow with their number.
    """
    try:
        with atomic_write(folder, folder=True) as temporary:
            writer = SplitWriter(temporary, inputs.data.examples)
            failures, notes, label_notes = _read(writer, inputs, jobs, progress)
            writer.close()
            splits = [split for split in inputs.data.splits if split in writer.splits]
            if inputs.needed not in splits:
                _raise_without_split(inputs, failures, splits)
            manifest = {"splits": splits, "one_chain": writer.one_chain, "failures": [asdict(f) for f in failures]}
            manifest["label_notes"] = label_notes
            (temporary / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    except OSError:
        if not (folder / MANIFEST).is_file():
            raise
    return notes


def _read(
    writer: SplitWriter, inputs: _Inputs, jobs: int, progress: Callable[[int, int], None] | None
) -> tuple[list[Failure], tuple[str, ...], list[str]]:
    """Make the graphs and pass them to the writer; return the failures, messages of this run, and those on labels."""
    failures: list[Failure] = []
    notes: list[str] = []
    reports: dict[str, LossReport] = {}
    checked = _LabelCheck()
    data = inputs.data
    number = {example.id: i for i, example in enumerate(data.examples)}
    results = iter_graphs(
        inputs.requests,
        inputs.plan,
        read=inputs.read,
        step=LabeledGraph(inputs.task),
        jobs=jobs if data.reads_files else 1,
        fatal=(LabelError,),
    )
    for done, result in enumerate(results, 1):
        i = number[result.protein]
        own, graph = data.labels[i], None
        if isinstance(result, Failure):
            failures.append(result)
        elif not isinstance(own, ResidueLabels) or checked.accept(own, result.residues):
            graph = result.graph
            notes += result.notes
            if result.residues.report.changes():
                reports[result.source] = result.residues.report
        writer.add(i, graph)
        if progress is not None:
            progress(done, len(data.examples))
    return failures, (*count_notes(notes), *reader_notes(reports)), checked.notes()


@dataclass
class _LabelCheck:
    """Labels per residue that do not fit their structures, of all proteins."""

    wrong: list[tuple[str, ResidueLabels, Residues, np.ndarray]] = field(default_factory=list)
    absent: list[AbsentLabels] = field(default_factory=list)
    left_out: list[AbsentLabels] = field(default_factory=list)
    shifts: dict[str, int] = field(default_factory=dict)

    def accept(self, labels: ResidueLabels, residues: Residues) -> bool:
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

    def notes(self) -> list[str]:
        """Return the note on labels that were left out; raise :class:`LabelError` for faults."""
        if self.wrong:
            raise wrong_types_error(self.wrong)
        if self.absent:
            raise absent_residues_error(self.absent, self.shifts)
        return [describe_left_out(self.left_out)] if self.left_out else []


def _raise_without_split(inputs: _Inputs, failures: Sequence[Failure], other_splits: Sequence[str]) -> None:
    """Raise the error of a component that failed on every protein, or of a needed split without graphs."""
    data = inputs.data
    with with_failures(failures):
        if failures and all(failure.error_type == ComponentError.__name__ for failure in failures):
            first = next(request for request in inputs.requests if request.protein == failures[0].protein)
            step = LabeledGraph(inputs.task)
            list(iter_graphs(first, inputs.plan, step=step, read=inputs.read, fatal=(ComponentError,)))  # raises it
        raise empty_split_error(data.name, inputs.task.name, inputs.needed, data.examples, failures, other_splits)


def _open(folder: Path) -> Prepared | None:
    """Return the data of an earlier run; None if there are none, or if they are damaged."""
    try:
        return _read_prepared(folder)
    except FileNotFoundError:
        return None
    except (DatasetError, OSError, ValueError, KeyError, TypeError):
        shutil.rmtree(folder, ignore_errors=True)
        return None


def _read_prepared(folder: Path) -> Prepared:
    manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
    splits = {split: GraphStore(folder / split) for split in manifest["splits"]}
    failures = tuple(Failure(**failure) for failure in manifest["failures"])
    return Prepared(splits, failures, manifest["one_chain"], tuple(manifest["label_notes"]))


def _write_given(graphs: Mapping[str, Sequence[ProteinGraph]]) -> Prepared:
    """Write given graphs of each split to a temporary folder."""
    folder = tempfile.TemporaryDirectory(prefix="protgraph-")
    stores = {split: write_store(Path(folder.name) / split, members) for split, members in graphs.items() if members}
    return Prepared(stores, (), all(map(is_one_chain, stores.get("train", ()))), (), folder)


class SplitWriter:
    """Write graphs to the store of their split; only the shards in progress are in memory.

    ``folder``: folder of the stores. ``examples``: define the split and the order of the graphs. ``one_chain``: True if
    every training graph so far is of a single chain.

    Notes
    -----
    Files with several proteins are read once, so graphs may come before their turn. They are kept until then.
    """

    def __init__(self, folder: Path, examples: Sequence[Example]) -> None:
        self.folder, self.examples, self.one_chain = folder, examples, True
        self._writers: dict[str, ShardWriter] = {}
        self._waiting: dict[int, ProteinGraph | None] = {}
        self._next = 0

    @property
    def splits(self) -> list[str]:
        """Splits that have a graph."""
        return list(self._writers)

    def add(self, number: int, graph: ProteinGraph | None) -> None:
        """Add the graph of an example by its number; None if it has none."""
        self._waiting[number] = graph
        while self._next in self._waiting:
            self._write(self._next, self._waiting.pop(self._next))
            self._next += 1

    def close(self) -> None:
        """Complete the stores."""
        for number in sorted(self._waiting):
            self._write(number, self._waiting[number])
        for writer in self._writers.values():
            writer.close()

    def _write(self, number: int, graph: ProteinGraph | None) -> None:
        if graph is None:
            return
        split = self.examples[number].split
        self.one_chain = self.one_chain and (split != "train" or is_one_chain(graph))
        if split not in self._writers:
            self._writers[split] = ShardWriter(self.folder / split)
        self._writers[split].add(graph)


def is_one_chain(graph: ProteinGraph) -> bool:
    """Return True for a graph of a single chain, or without chains."""
    return "chain" not in graph or int(graph.chain.max()) == 0


@dataclass(frozen=True, eq=False)
class _TaskData:
    """Everything that a dataset states about one task, checked; the proteins themselves are not read yet."""

    name: str
    version: str
    read: ReadOptions  # of the dataset's files
    reads_files: bool  # False for a dataset that reads its proteins itself
    splits: tuple[str, ...]  # in the order of the dataset
    examples: Sequence[Example]
    labels: Sequence[Labels | None]  # one per example; None if the task derives them


def _read_task_data(dataset: Dataset, task: str) -> _TaskData:
    """Return the examples of a task with their labels, and what identifies the dataset."""
    examples = checked_examples(dataset, task)
    return _TaskData(
        name=dataset.name,
        version=dataset.version,
        read=dataset.read_options,
        reads_files=dataset.reads_files,
        splits=tuple(dataset.splits(task)),
        examples=examples,
        labels=checked_labels(dataset, task, examples),
    )


def _select_graphs(dataset: Dataset, task: Task, plan: FeaturePlan) -> dict[str, list[ProteinGraph]]:
    """Return the labeled graphs of each split of a dataset of graphs, with the fields that the model reads."""
    source = dataset.source
    assert isinstance(source, GraphDataset)
    if task.inputs.hidden or task.inputs.noise:
        raise DatasetError(
            f"task {task.name!r} hides information before featurizers run, which is not possible with graphs. "
            "Give files, a folder or a graph store."
        )
    splits: dict[str, list[ProteinGraph]] = {split: [] for split in dataset.splits(task.name)}
    for example in dataset.examples(task.name):
        labeled, y = source.labeled_graph(example)
        usable = plan.precomputed & set(labeled.keys())
        # The model names those of ALWAYS that it reads and the graph does not have.
        missing = plan.precomputed - usable - (set(ALWAYS) if usable - {"edge_index"} else set())
        if missing:
            raise DatasetError(
                f"graph {example.id!r} lacks the fields {', '.join(sorted(missing))}, which are features or inputs of "
                "the model. Make the graphs with its features: pg.build_graph(protein, pg.models.get(NAME).features), "
                "or give a model that reads the fields of your graphs: pg.ModelSpec(…, inputs={field: irreps})."
            )
        graph = ProteinGraph()
        set_attributes(graph, {key: labeled[key] for key in labeled.keys() if key in usable})  # noqa: SIM118
        for key in (*_ATTRIBUTES, *plan.attributes):
            if key in labeled:
                graph[key] = labeled[key]
        graph.name, graph.y, graph.y_level = example.id, y, task.stored.level
        graph.validate()
        splits[example.split].append(graph)
    return splits
