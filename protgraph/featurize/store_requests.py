"""Proteins of graph stores and datasets as requests of the pipeline."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial

from protgraph.data.datasets.dataset import Dataset, Example
from protgraph.data.datasets.labels import Labels
from protgraph.data.store.graph_store import GraphStore, open_store
from protgraph.data.store.store_description import is_store
from protgraph.errors import DatasetError, OptionError
from protgraph.featurize.steps import ProteinRequest
from protgraph.featurize.store_entry import StoreEntry
from protgraph.structure.io.read_options import ReadOptions
from protgraph.structure.residues.residues import Residues

__all__ = ["dataset_requests", "store_entry", "store_requests"]


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
