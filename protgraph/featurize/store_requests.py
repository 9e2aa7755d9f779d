"""Proteins of graph stores as requests of the pipeline."""

from __future__ import annotations

import os

from protgraph.data.store.graph_store import GraphStore
from protgraph.errors import DatasetError, OptionError
from protgraph.featurize.steps import ProteinRequest
from protgraph.featurize.store_entry import StoreEntry, open_once
from protgraph.structure.io.read_options import ReadOptions

__all__ = ["store_entry", "store_requests"]


def store_requests(store: GraphStore | str | os.PathLike[str], read: ReadOptions) -> list[ProteinRequest]:
    """Return a request for each protein of a store.

    Raises
    ------
    DatasetError, OptionError
        See :func:`store_entry`.
    """
    store = store if isinstance(store, GraphStore) else open_once(os.fspath(store))
    check_store(store, read)
    return [
        ProteinRequest(source, chains=read.chains, read=StoreEntry(str(store.path), i, read.ligands))
        for i, source in enumerate(store.sources)
    ]


def store_entry(path: str | os.PathLike[str], source: str, read: ReadOptions) -> StoreEntry:
    """Return the protein of a store that was read from ``source``.

    Raises
    ------
    DatasetError
        The store has no residues, no ligands although they are required, or no such protein.
    OptionError
        The store was read with other options.
    """
    store = open_once(os.fspath(path))
    check_store(store, read)
    if source not in store.sources:
        raise DatasetError(f"graph store {str(path)!r} has no protein of {source!r}")
    return StoreEntry(str(path), store.sources.index(source), read.ligands)


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
