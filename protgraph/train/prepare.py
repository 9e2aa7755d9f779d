"""From a dataset and a task to stored graphs with labels: each file is read once, and what is made is kept."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import torch

from protgraph import __version__
from protgraph.data.datasets.dataset import Dataset, Example
from protgraph.data.datasets.labels import Labels, ResidueLabels, absent_residues
from protgraph.data.graph.node_level import on_residues
from protgraph.data.graph.protein_graph import ProteinGraph
from protgraph.data.store.graph_store import GraphStore, write_store
from protgraph.errors import DatasetError, LabelError, LeakError, ProtgraphError, WiringError
from protgraph.featurize.plan import FeaturePlan
from protgraph.file_io import atomic_write
from protgraph.structure.io.fasta import FastaRecord, read_fasta
from protgraph.structure.residues.residues import Residues
from protgraph.task.losses import known_labels
from protgraph.task.task import Task
from protgraph.train.cache import cache_dir, cached_residues, code_digest, component_digest, digest, stamps

__all__ = ["Failure", "Prepared", "prepare"]

MANIFEST = "prepared.json"
CODE = ("protgraph.structure", "protgraph.data", "protgraph.featurize", "protgraph.task")


@dataclass(frozen=True)
class Failure:
    """One protein that could not be used, while the others went on.

    Parameters
    ----------
    file, id : str
        The structure file, and what the protein is called ("" for all of the file).
    reason : str
        What went wrong, in one line.
    """

    file: str
    id: str
    reason: str

    @classmethod
    def of(cls, file: str | Path, id: str, error: Exception) -> Failure:
        """The record of an error; one that is not ours brings the name of its type."""
        text = " ".join(str(error).split())
        return cls(str(file), id, text if isinstance(error, ProtgraphError) else f"{type(error).__name__}: {text}")


@dataclass(frozen=True, eq=False)
class Prepared:
    """Graphs of a dataset for one task and one list of featurizers.

    Parameters
    ----------
    splits : mapping of str to GraphStore
        Proteins of each split, labels in ``y``.
    failures : tuple of Failure
        Proteins that are missing from them.
    one_chain : bool
        Whether every protein is one chain alone.
    """

    splits: Mapping[str, GraphStore]
    failures: tuple[Failure, ...]
    one_chain: bool
    keep: object = field(default=None, repr=False)  # a temporary folder lives as long as this

    @property
    def sizes(self) -> dict[str, tuple[int, int]]:
        """Proteins and residues of each split."""
        return {name: (len(store), store.num_residues) for name, store in self.splits.items()}


def prepare(
    dataset: Dataset,
    task: Task,
    plan: FeaturePlan,
    *,
    cache: str | Path | None = None,
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Prepared:
    """Make the graphs of every split, or find them as they were made before.

    Kept graphs are used again only for the same labels, splits and structure files, the same task, the same
    featurizers with the same options, and the same code, a plugin's included.

    Parameters
    ----------
    dataset : Dataset
    task : Task
        What it hides is taken away before any featurizer runs.
    plan : FeaturePlan
        The featurizers; only those that are stored matter here.
    cache : str or Path, optional
        Folder of prepared data; see :func:`protgraph.train.cache.cache_dir`.
    jobs : int
        Processes that read structure files; more than one needs a main module that can be imported.
    progress : callable, optional
        Told how many proteins of how many are done.

    Returns
    -------
    Prepared
        Proteins that cannot be read or featurized are listed in ``failures``.

    Raises
    ------
    LabelError
        Labels name residues that are not there, or do not fit the target.
    DatasetError
        Not one protein could be prepared, or none of the training split.
    WiringError
        The plan's nodes are atoms, and the task asks of pairs or edges, or of a causal model.
    LeakError
        A featurizer of the plan computes the label.
    """
    _suit(plan, task)
    cache = cache_dir(cache)
    examples = dataset.examples(task.name)
    labels = [dataset.labels(task.name, example) for example in examples]
    used = [featurizer for _, featurizer in (*plan.structure, *plan.edges)]
    used += [dataset, *(function for function in (task.derive, task.restore) if function is not None)]
    code = [component_digest(one) for one in used]
    temporary = None
    if None in code:  # without source: it may be another one next time
        temporary = tempfile.TemporaryDirectory(prefix="protgraph-")
        folder = Path(temporary.name) / "graphs"
    else:
        key = digest(_key(dataset, task, plan, examples), *map(_label_bytes, labels), code)
        folder = cache / "graphs" / f"{dataset.name or 'data'}-{task.name}-{key}".replace(os.sep, "_")
        if (kept := _open(folder)) is not None:
            return kept
    if jobs > 1 and type(dataset).read is Dataset.read:
        _read_ahead(sorted({e.path for e in examples if e.record is None}), cache, jobs, plan.wants_ligands)
    made, failures = _make(dataset, task, plan, examples, labels, cache, progress)
    _write(folder, made, failures)
    opened = _open(folder)
    return Prepared(opened.splits, opened.failures, opened.one_chain, temporary)


def _suit(plan: FeaturePlan, task: Task) -> None:
    """Atoms have no place in a sequence, pairs of them are not those of residues; and no feature may be the answer."""
    told = [n.name for n in plan.components if n.name in task.inputs.label_featurizers]
    if told:
        raise LeakError(
            f"task {task.name!r} asks for what featurizer {told[0]!r} computes.\n"
            "Take the featurizer out of the model, or train the model on another task."
        )
    if plan.node_type != "residue" and (task.inputs.causal or task.target.level not in ("node", "graph")):
        raise WiringError(
            f"task {task.name!r} is one of residues, and the model's node_type is {plan.node_type!r}.\n"
            "Models of atoms take tasks that ask about each residue or about the protein, and of all residues at once."
        )


def _key(dataset: Dataset, task: Task, plan: FeaturePlan, examples: Sequence[Example]) -> list[object]:
    told = [(e.id, e.chains, e.split, e.record) for e in examples]
    asked = (task.name, sorted(task.inputs.hidden), task.inputs.noise, task.inputs.visible_types, asdict(task.stored))
    files = stamps([e.path for e in examples])
    return [dataset.name, dataset.version, asked, plan.key(), told, files, __version__, code_digest(*CODE)]


def _label_bytes(labels: Labels | None) -> bytes:
    if labels is None:
        return b""
    arrays = [np.asarray(value) for value in vars(labels).values()]
    return b"".join(a.tobytes() if a.dtype != object else repr(a.tolist()).encode() for a in arrays)


def _make(
    dataset: Dataset,
    task: Task,
    plan: FeaturePlan,
    examples: Sequence[Example],
    labels: Sequence[Labels | None],
    cache: Path,
    progress: Callable[[int, int], None] | None,
) -> tuple[dict[str, list[ProteinGraph]], list[Failure]]:
    """The graphs of each split, in the dataset's order, and the failures."""
    graphs: dict[int, ProteinGraph] = {}
    failures: list[Failure] = []
    absent: list[tuple[str, ResidueLabels, np.ndarray]] = []
    for done, (i, residues) in enumerate(_read(dataset, examples, cache, plan.wants_ligands), 1):
        example, given = examples[i], labels[i]
        try:
            if isinstance(residues, Exception):
                raise residues
            if isinstance(given, ResidueLabels) and (missing := given.absent(residues)).any():
                absent.append((given.name or example.id, given, missing))
            else:
                graphs[i] = _graph(example, residues, task, plan, given)
        except LabelError:
            raise
        except Exception as e:  # noqa: BLE001 -- a foreign featurizer may raise anything; the others go on
            failures.append(Failure.of(example.path, example.id, e))
        if progress is not None:
            progress(done, len(examples))
    if absent:
        raise absent_residues(absent)
    made: dict[str, list[ProteinGraph]] = {split: [] for split in dataset.splits(task.name)}
    for i in sorted(graphs):
        made[examples[i].split].append(graphs[i])
    if not made.get("train"):
        why = f"; the first of {len(failures)} failures: {failures[0].reason}" if failures else ""
        raise DatasetError(f"dataset {dataset.name!r} has no protein to train {task.name!r} on{why}")
    return {split: held for split, held in made.items() if held}, failures


def _graph(example: Example, residues: Residues, task: Task, plan: FeaturePlan, labels: Labels | None) -> ProteinGraph:
    """One protein: labels from everything, features from what the task lets be seen."""
    seen = task.inputs.visible(residues, example.id)
    y = torch.from_numpy(task.labels(residues, labels, seen=seen))
    if labels is None and not known_labels(y).any():
        why = "no residue of it has one" if residues.has_coordinates else "there is only the sequence of it"
        raise DatasetError(f"task {task.name!r} finds no label in {example.id!r}: {why}")
    graph = plan.precompute(seen, aatype=residues.aatype if task.inputs.visible_types else None)
    graph.name, graph.y, graph.y_level = example.id, on_residues(y, graph, task.stored), task.stored.level
    graph.validate()
    return graph


def _read(
    dataset: Dataset, examples: Sequence[Example], cache: Path, ligands: bool
) -> Iterable[tuple[int, Residues | Exception]]:
    """Residues of every example, each file read once; an error in place of residues that cannot be had."""
    if type(dataset).read is not Dataset.read:  # it has its own way to its proteins
        for i, example in enumerate(examples):
            yield i, _tried(lambda e=example: dataset.read(e))
        return
    by_file: dict[Path, list[int]] = {}
    for i, example in enumerate(examples):
        by_file.setdefault(example.path, []).append(i)
    for path, members in by_file.items():
        sequences = any(examples[i].record is not None for i in members)
        found = _tried(lambda p=path, s=sequences: _records(p) if s else cached_residues(p, cache, ligands=ligands))
        for i in members:
            yield i, found if isinstance(found, Exception) else _tried(lambda f=found, e=examples[i]: _part(f, e))


def _records(path: Path) -> dict[str, FastaRecord]:
    return {record.name: record for record in read_fasta(path)}


def _part(found: Residues | Mapping[str, FastaRecord], example: Example) -> Residues:
    """One protein of a structure, or of the records of a FASTA file."""
    whole = found if isinstance(found, Residues) else found[example.record].residues()
    return whole if example.chains is None else whole.chains(example.chains)


def _tried(read: Callable[[], Residues]) -> Residues | Exception:
    try:
        return read()
    except Exception as e:  # noqa: BLE001 -- parsers raise many things on broken files
        return e


def _read_ahead(paths: Sequence[Path], cache: Path, jobs: int, ligands: bool) -> None:
    """Read files in several processes, which leave the residues in the cache."""
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(_cache_one, paths, [cache] * len(paths), [ligands] * len(paths), chunksize=8))


def _cache_one(path: Path, cache: Path, ligands: bool) -> None:
    _tried(lambda: cached_residues(path, cache, ligands=ligands))


def _write(folder: Path, made: Mapping[str, list[ProteinGraph]], failures: Sequence[Failure]) -> None:
    """Write all splits; the folder appears whole or not at all, and the first of two writers wins."""
    one_chain = all(int(g.chain.max()) == 0 for held in made.values() for g in held)
    manifest = {"splits": list(made), "one_chain": one_chain, "failures": [asdict(f) for f in failures]}
    try:
        with atomic_write(folder, folder=True) as temporary:
            for split, graphs in made.items():
                write_store(temporary / split, graphs)
            (temporary / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    except OSError:
        if not (folder / MANIFEST).is_file():
            raise


def _open(folder: Path) -> Prepared | None:
    """What was written before; None where nothing is, or where it is damaged."""
    try:
        told = json.loads((folder / MANIFEST).read_text("utf-8"))
        splits = {split: GraphStore(folder / split) for split in told["splits"]}
    except FileNotFoundError:
        return None
    except (DatasetError, OSError, ValueError, KeyError):
        shutil.rmtree(folder, ignore_errors=True)
        return None
    return Prepared(splits, tuple(Failure(**f) for f in told["failures"]), told["one_chain"])
