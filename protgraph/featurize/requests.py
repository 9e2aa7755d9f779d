"""Requests of the pipeline: the proteins of files, folders, patterns, graph stores and datasets."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from protgraph.argument_types import check_arguments
from protgraph.data.datasets.dataset import Dataset, Example
from protgraph.data.datasets.labels import Labels
from protgraph.data.store.graph_store import GraphStore, open_store
from protgraph.data.store.store_description import is_store
from protgraph.errors import DatasetError, OptionError
from protgraph.featurize.steps import ProteinRequest, StoreEntry
from protgraph.structure.io.read_options import ReadOptions
from protgraph.structure.io.sources import expand_files
from protgraph.structure.residues.residues import Residues

__all__ = ["Source", "dataset_requests", "expand_sources", "request_units", "store_entry", "store_requests"]

Source: TypeAlias = str | os.PathLike[str] | ProteinRequest | GraphStore


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
    made = ReadOptions.from_dict(store.info.get("read", {}), where=str(store.path))
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
