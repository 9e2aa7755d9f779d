"""The pipeline from sources to requests, and from these to graphs: each file is read once, by one or several processes.

Every command and function that reads files uses :func:`iter_graphs`; a task gives its own step.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, TypeAlias

from protgraph import registry
from protgraph.argument_types import check_arguments
from protgraph.data.cache_key import component_digest, digest
from protgraph.data.datasets.dataset import Dataset, Example
from protgraph.data.datasets.labels import Labels
from protgraph.data.store.graph_store import GraphStore, open_store
from protgraph.data.store.store_description import is_store
from protgraph.errors import DatasetError, OptionError, OutputFileError, SelectionError, WorkerDiedError
from protgraph.failure import Failure
from protgraph.featurize.plan import FeaturePlan
from protgraph.featurize.result import GraphResult
from protgraph.featurize.steps import AllFeatures, GraphStep, ProteinRequest, StoreEntry
from protgraph.registry.component import ComponentSpec
from protgraph.structure.io.read_options import ReadOptions
from protgraph.structure.io.registered_readers import alignment_reader
from protgraph.structure.io.sources import ProteinSource, expand_files, open_source, proteins_of
from protgraph.structure.residues.residues import Residues
from protgraph.worker_pool import WorkerPool
from protgraph.worker_process import WorkerDied, is_portable

__all__ = [
    "ReadProtein",
    "Source",
    "dataset_requests",
    "expand_sources",
    "graph_digest",
    "has_portable_features",
    "iter_graphs",
    "read_requests",
    "request_units",
    "store_entry",
    "store_requests",
]

Source: TypeAlias = str | os.PathLike[str] | ProteinRequest | GraphStore

_AHEAD = 4  # files per process that are submitted before the oldest one is done


@check_arguments("sources", "plan", "read", "jobs")
def iter_graphs(
    sources: Source | Iterable[Source],
    plan: FeaturePlan,
    *,
    read: ReadOptions | None = None,
    step: GraphStep | None = None,
    split_chains: bool = False,
    select_parts: bool = False,
    jobs: int = 1,
    fatal: tuple[type[Exception], ...] = (),
) -> Iterator[GraphResult | Failure]:
    """Make the graphs of proteins, one after the other, in the order of the sources.

    Each file is opened, hashed and parsed once, however many of its proteins are requested. A file or protein that
    fails gives a :class:`Failure`, and the others continue.

    Parameters
    ----------
    sources : str, PathLike, GraphStore, ProteinRequest or iterable of those
        Structure and FASTA files, folders, patterns and archive entries such as "pdb:1ubq" (see
        :func:`~protgraph.featurize.expand_sources`), FASTA records "x.fasta#name", graph stores, or single requests.
    plan : FeaturePlan
        Features of the graphs.
    read : ReadOptions, optional
        Selection of chains, model, alternate locations and assembly. Ligands are read if the plan needs them.
    step : GraphStep, optional
        Function from residues to graph; :class:`~protgraph.featurize.steps.AllFeatures` by default.
    split_chains : bool
        Make a graph of each chain instead of each protein.
    select_parts : bool
        Make a graph of each part that a featurizer of the plan selects, e.g. of each antibody variable fragment; see
        :meth:`FeaturePlan.parts`.
    jobs : int
        Processes. A file whose process dies twice, e.g. because memory is exhausted, gives a :class:`Failure`. With a
        step that cannot be pickled or imported, or featurizers registered in this session, all files are read in this
        process.
    fatal : tuple of exception types
        Errors of the step that stop the run instead of giving a :class:`Failure`.

    Yields
    ------
    GraphResult or Failure
        One for each request; for a file, one for each of its proteins.

    Examples
    --------
    >>> [failure] = iter_graphs("missing.pdb", FeaturePlan(["knn"]))
    >>> failure.error_type
    'StructureFileError'
    """
    read = (read or ReadOptions()).with_ligands(plan.needs_ligands)
    step = step or AllFeatures()
    run = _Run(plan.components, plan.node_type, read, step, split_chains, select_parts, fatal)
    units = request_units(sources, read)
    if jobs < 1:
        raise OptionError(f"iter_graphs: jobs = {jobs}. Allowed: 1 or more.")
    if jobs > 1 and has_portable_features(plan) and is_portable(run):
        yield from _parallel(units, run, jobs)
        return
    for unit in units:
        yield from _finish(read_requests(unit, run.read), run, plan)


@dataclass(frozen=True)
class _Run:
    """Everything that worker processes need, as picklable data."""

    components: tuple[ComponentSpec, ...]
    node_type: str
    read: ReadOptions
    step: GraphStep
    split_chains: bool
    select_parts: bool
    fatal: tuple[type[Exception], ...]


def graph_digest(plan: FeaturePlan, step: GraphStep) -> str | None:
    """Return the digest of the features and the code that graphs depend on; None if the code has no source."""
    featurizers = [featurizer for _, featurizer in plan.featurizers]
    digests = [component_digest(part) for part in (*featurizers, step)]
    return None if None in digests else digest(digests, plan.key(), [n.to_dict() for n in plan.components])


def _parallel(units: Sequence[list[ProteinRequest]], run: _Run, jobs: int) -> Iterator[GraphResult | Failure]:
    """Distribute units to processes."""
    pool = WorkerPool(partial(_work, run=run), workers=jobs)
    with closing(pool.run(units, in_order=True, ahead=_AHEAD)) as results:
        for unit, done in results:
            if isinstance(done, WorkerDied):
                yield from (_died(request, done, jobs) for request in unit)
            else:
                yield from done


def has_portable_features(plan: FeaturePlan) -> bool:
    """Return True if other processes can import all featurizers; False if some were registered in this session."""
    return not any(registry.featurizers.entry(n.name).is_session for n in plan.components)


def _died(request: ProteinRequest, died: WorkerDied, jobs: int) -> Failure:
    """Return the failure of a request whose process died, also when it was tried again."""
    source = str(request.source) + (f"#{request.record}" if request.record else "")
    error = WorkerDiedError(
        f"{source}: its process {died.reason}, twice. The other files are not affected. Run again with fewer than "
        f"{jobs} jobs, which need less memory."
    )
    return Failure.of(source, request.protein, error)


@lru_cache(maxsize=8)
def _plan(components: tuple[ComponentSpec, ...], node_type: str) -> FeaturePlan:
    return FeaturePlan(components, node_type=node_type)


def _work(unit: list[ProteinRequest], run: _Run) -> list[GraphResult | Failure]:
    plan = _plan(run.components, run.node_type)
    return list(_finish(read_requests(unit, run.read), run, plan))


def _finish(proteins: Iterable[ReadProtein], run: _Run, plan: FeaturePlan) -> Iterator[GraphResult | Failure]:
    """Apply the step to the proteins of one file."""
    begin = time.perf_counter()
    for protein in proteins:
        request, residues = protein.request, protein.residues
        if isinstance(residues, Exception):
            seconds = time.perf_counter() - begin
            yield Failure.of(protein.label, request.protein, residues, sha256=protein.sha256, seconds=seconds)
        else:
            yield from _finish_protein(protein, residues, run, plan, begin)
        begin = time.perf_counter()


def _finish_protein(
    protein: ReadProtein, residues: Residues, run: _Run, plan: FeaturePlan, begin: float
) -> Iterator[GraphResult | Failure]:
    """Apply the step to the parts of one protein; ``begin``: when its file was begun, by the clock of this process."""
    request = protein.request
    try:
        named_proteins = _split(residues, request, run, plan)
    except run.fatal:
        raise
    except Exception as e:  # noqa: BLE001 -- a plugin's featurizer may raise anything; the others continue
        name = request.protein or residues.name
        yield Failure.of(protein.label, name, e, sha256=protein.sha256, seconds=time.perf_counter() - begin)
        return
    for part, name in named_proteins:
        yield _graph(protein, part, name, run, plan, begin)
        begin = time.perf_counter()


def _split(residues: Residues, request: ProteinRequest, run: _Run, plan: FeaturePlan) -> list[tuple[Residues, str]]:
    """Return the parts of a protein that are graphs of their own, each with a name for failures."""
    if run.split_chains:
        return [(residues.chains((chain,)), chain) for chain in residues.chain_names]
    parts = plan.parts(residues) if run.select_parts else [residues]
    return [(part, request.protein or ",".join(part.chain_names)) for part in parts]


def _graph(
    protein: ReadProtein, residues: Residues, name: str, run: _Run, plan: FeaturePlan, begin: float
) -> GraphResult | Failure:
    """Apply the step to one protein, or the residues of a part of it."""
    label, sha256 = protein.label, protein.sha256
    request = replace(protein.request, notes=[])
    fatal: tuple[type[Exception], ...] = (OutputFileError, *run.fatal)
    try:
        graph = run.step(_with_alignment(residues, run, plan, request), plan, request)
        request.notes.extend(plan.notes(residues))
    except fatal:
        raise
    except Exception as e:  # noqa: BLE001 -- a plugin's featurizer may raise anything; the others continue
        return Failure.of(label, name, e, sha256=sha256, seconds=time.perf_counter() - begin)
    seconds = time.perf_counter() - begin
    own = request.protein or residues.name
    residues = residues.copy_with(alignment=None)  # of many megabytes, which results do not need
    return GraphResult(label, own, residues, graph, sha256, seconds, tuple(request.notes))


def _with_alignment(residues: Residues, run: _Run, plan: FeaturePlan, request: ProteinRequest) -> Residues:
    """Return residues with the alignment that the read options name, if a featurizer reads it.

    The features of a graph store were computed with the alignments of that time: they are not recomputed without one.
    """
    if run.read.alignment is None:
        return residues
    if plan.needs_alignment is None:
        request.notes.append("the alignment is not used: no feature reads one")
        return residues
    alignment = alignment_reader().align(residues, run.read.alignment)
    request.notes.extend(alignment.notes)
    return residues.copy_with(alignment=alignment)


@dataclass(frozen=True, eq=False)
class ReadProtein:
    """One requested protein after reading.

    ``label``: the source; for a FASTA record, followed by "#" and its name. ``residues``: the protein, or the error
    that reading it raised. ``sha256``: hexadecimal SHA-256 of the file; "" if it was not read.
    """

    label: str
    request: ProteinRequest
    residues: Residues | Exception
    sha256: str = ""


def read_requests(requests: Sequence[ProteinRequest], read: ReadOptions) -> Iterator[ReadProtein]:
    """Read the proteins of one source; errors take the place of residues."""
    if requests[0].read is not None:
        for request in requests:
            assert request.read is not None  # contract: all requests of a source are of one kind
            sha256 = getattr(request.read, "sha256", "")
            yield ReadProtein(request.source, request, _attempt(request.read, request), sha256)
        return
    source = requests[0].source
    file = _attempt(lambda: open_source(source))
    sha256 = "" if isinstance(file, Exception) else file.sha256
    proteins = file if isinstance(file, Exception) else _attempt(lambda: proteins_of(file, read, label=source))
    for request in requests:
        for protein in _chosen(proteins, request):
            residues = protein if isinstance(protein, Exception) else _attempt(protein.read, request)
            label = request.source if isinstance(protein, Exception) else protein.label
            yield ReadProtein(label, request, residues, sha256)


def _chosen(proteins: list[ProteinSource] | Exception, request: ProteinRequest) -> list[ProteinSource | Exception]:
    """Return the proteins of a file that a request names."""
    if isinstance(proteins, Exception):
        return [proteins]
    if request.record is None:
        return list(proteins)
    names = [protein.record for protein in proteins]
    if request.record not in names:
        listed = ", ".join(repr(name) for name in names[:20] if name)
        return [SelectionError(f"{request.source}: no record {request.record!r}; records here: {listed}")]
    return [proteins[names.index(request.record)]]


def _attempt(read: Callable[[], Any], request: ProteinRequest | None = None) -> Any:
    """Return what a function returns, with the chains of a request, or the error that it raises."""
    try:
        value = read()
        return value if request is None or request.chains is None else value.chains(request.chains)
    except Exception as e:  # noqa: BLE001 -- parsers raise many types of error on broken files; the others continue
        return e


# --- requests: the proteins of files, folders, patterns, graph stores and datasets -----------------------------------


@check_arguments("sources")
def expand_sources(sources: Source | Iterable[Source]) -> list[str]:
    """Return the files and graph stores of sources, each once, in order.

    Parameters
    ----------
    sources : str, PathLike, GraphStore or iterable of those
        As for :func:`protgraph.structure.io.expand_files`, or graph stores, which stay as they are.
    """
    expanded: dict[str, None] = {}
    for source in _as_list(sources):
        if isinstance(source, GraphStore) or is_store(source):
            expanded[str(source.path if isinstance(source, GraphStore) else source)] = None
        else:
            assert not isinstance(source, ProteinRequest)  # contract: _requests keeps requests as they are
            expanded |= dict.fromkeys(expand_files(source))
    return list(expanded)


def _as_list(sources: Source | Iterable[Source]) -> Iterable[Source]:
    if hasattr(sources, "columns"):
        raise OptionError(
            f"sources: {type(sources).__name__} is a table. Allowed: files, folders, patterns, graph stores, or "
            "a list of these. Give a column of file names, as a list."
        )
    return [sources] if isinstance(sources, str | os.PathLike | ProteinRequest | GraphStore) else sources


def _requests(sources: Source | Iterable[Source], read: ReadOptions) -> Iterator[ProteinRequest]:
    """Expand sources to requests: files, FASTA records "x.fasta#name", and the proteins of stores."""
    for source in _as_list(sources):
        if isinstance(source, ProteinRequest):
            yield source
            continue
        if isinstance(source, GraphStore) or is_store(source):
            yield from store_requests(source, read)
            continue
        for text in expand_files(source) if isinstance(source, str) else expand_sources(source):
            file, mark, record = text.rpartition("#")
            if mark and os.path.isfile(file) and not os.path.exists(text):
                yield ProteinRequest(file, record=record)
            else:
                yield ProteinRequest(text)


def request_units(sources: Source | Iterable[Source], read: ReadOptions) -> list[list[ProteinRequest]]:
    """Expand sources to requests, grouped by file: units of work that open one file each.

    Each source is at its first place; a plain file that is repeated counts once.
    """
    units: dict[object, list[ProteinRequest]] = {}
    for number, request in enumerate(_requests(sources, read)):
        is_plain = request.record is None and not request.protein and request.chains is None
        if request.read is not None:
            units[number] = [request]
        elif is_plain:
            units.setdefault((request.source,), [request])
        else:
            units.setdefault(request.source, []).append(request)
    return list(units.values())


def store_requests(store: GraphStore | str | os.PathLike[str], read: ReadOptions) -> list[ProteinRequest]:
    """Return a request for each protein of a store."""
    store = store if isinstance(store, GraphStore) else open_store(store)
    check_store(store, read)
    return [
        ProteinRequest(source, chains=read.chains, read=StoreEntry(str(store.path), i, read.ligands))
        for i, source in enumerate(store.sources)
    ]


def dataset_requests(
    dataset: Dataset, examples: Sequence[Example], read: ReadOptions, *, labels: Sequence[Labels | None] | None = None
) -> list[ProteinRequest]:
    """Return a request for each example of a dataset, named by its id.

    Parameters
    ----------
    dataset : Dataset
        A dataset with its own ``read`` reads its proteins itself.
    read : ReadOptions
        Options for graph stores; those of files are an argument of :func:`protgraph.featurize.iter_graphs`.
    labels : sequence of Labels or None, optional
        ``data`` of the requests, one per example.
    """
    requests: list[ProteinRequest] = []
    for example, example_labels in zip(examples, labels or [None] * len(examples), strict=True):
        source, record, chains = str(example.path), example.record, example.chains
        entry: Callable[[], Residues] | None = None
        if not dataset.reads_files:
            record, chains, entry = None, None, partial(dataset.read, example)
        elif is_store(example.path):
            source, record, chains = example.record or "", None, example.chains or read.chains
            entry = store_entry(example.path, source, read)
        requests.append(ProteinRequest(source, example.id, record, chains, entry, example_labels))
    return requests


def store_entry(path: str | os.PathLike[str], source: str, read: ReadOptions) -> StoreEntry:
    """Return the protein of a store that was read from ``source``."""
    store = open_store(path)
    check_store(store, read)
    number = store.number_of(source)
    if number is None:
        raise DatasetError(f"graph store {str(path)!r} has no protein of {source!r}")
    return StoreEntry(str(path), number, read.ligands)


def check_store(store: GraphStore, read: ReadOptions) -> None:
    """Raise if the residues of a store are not those that ``read`` would give; see :func:`store_entry`."""
    if not store.has_residues:
        raise DatasetError(f"graph store {str(store.path)!r} has no residues. Write it with 'protgraph featurize'.")
    made = store.read_options
    for name in ("model_number", "altloc", "assembly"):
        given, stored = getattr(read, name), getattr(made, name)
        if given not in (stored, getattr(ReadOptions(), name)):
            raise OptionError(
                f"graph store {str(store.path)!r} was read with {name} = {stored!r}; got {given!r}. "
                "Featurize the files again with this option."
            )
    if read.ligands and not made.ligands:
        raise DatasetError(
            f"graph store {str(store.path)!r} has no ligands, and the model reads them. "
            "Featurize the files with the model's features: protgraph featurize FILES --model NAME -o STORE."
        )
