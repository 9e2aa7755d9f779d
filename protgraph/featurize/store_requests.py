"""Proteins of graph stores as requests of the pipeline: residues, and features where the plan is the same."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from protgraph.data.cache_key import code_digest, component_digest, digest
from protgraph.data.graph.protein_graph import ProteinGraph, set_attributes
from protgraph.data.store.graph_store import META, GraphStore
from protgraph.errors import DatasetError, OptionError
from protgraph.featurize.plan import FeaturePlan
from protgraph.featurize.steps import ProteinRequest
from protgraph.structure.io.read_options import ReadOptions
from protgraph.structure.residues.residues import Residues

__all__ = ["StoreEntry", "plan_digest", "store_entry", "store_requests"]

_CODE = ("protgraph.structure", "protgraph.data", "protgraph.featurize")
_ATTRIBUTES = ("degree", "name", "residue_ids", "report")


def plan_digest(plan: FeaturePlan) -> str | None:
    """Return the digest of the precompute stage of a plan, its code included; None if the code has no source."""
    featurizers = [component_digest(featurizer) for _, featurizer in (*plan.structure, *plan.edges)]
    return None if None in featurizers else digest(plan.key(), featurizers, code_digest(*_CODE))


@dataclass(frozen=True)
class StoreEntry:
    """One protein of a graph store; calling it returns the residues. It is picklable.

    Parameters
    ----------
    path : str
        Folder of the store.
    number : int
        Place of the protein in the store.
    ligands : bool
        Keep the ligands of the store.
    """

    path: str
    number: int
    ligands: bool = False

    def __call__(self) -> Residues:
        """Return the residues of the protein."""
        residues = _opened(self.path).residues(self.number)
        return residues if self.ligands else replace(residues, ligands=None)

    @property
    def sha256(self) -> str:
        """Hexadecimal SHA-256 of the file that the protein was read from."""
        return _opened(self.path).checksums[self.number]

    def mismatch(self, plan: FeaturePlan, residues: Residues) -> str:
        """Return the reason why the features of the store are not those of a plan; "" if they are.

        ``residues`` are what this entry returned, or chains of it, which have other features.
        """
        store = _opened(self.path)
        if plan.needs_ligands:
            return "the model reads ligands"
        if len(residues) != store.num_residues_of(self.number):
            return "chains are selected"
        if store.info.get("plan") is None or store.info["plan"] != plan_digest(plan):
            return "they were computed by other featurizers, options or code than those of the model"
        return ""

    def precomputed(self, plan: FeaturePlan) -> ProteinGraph:
        """Return the features of the precompute stage; see :meth:`mismatch`."""
        stored, graph = _opened(self.path)[self.number], ProteinGraph()
        keys = [key for key in stored.keys() if key in plan.precomputed or key in _ATTRIBUTES]  # noqa: SIM118
        set_attributes(graph, {key: stored[key] for key in keys})
        return graph


def store_requests(store: GraphStore | str | os.PathLike[str], read: ReadOptions) -> list[ProteinRequest]:
    """Return a request for each protein of a store.

    Raises
    ------
    DatasetError, OptionError
        See :func:`store_entry`.
    """
    store = store if isinstance(store, GraphStore) else _opened(os.fspath(store))
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
    store = _opened(os.fspath(path))
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


def _opened(path: str) -> GraphStore:
    try:
        stamp = (Path(path) / META).stat().st_mtime_ns
    except OSError:
        stamp = 0
    return _open(path, stamp)


@lru_cache(maxsize=16)
def _open(path: str, stamp: int) -> GraphStore:
    return GraphStore(path)
