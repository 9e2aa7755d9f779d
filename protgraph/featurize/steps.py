"""Steps of the pipeline: functions from the residues of one protein, e.g. of a graph store, to its graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from protgraph.data.cache_key import code_digest, component_digest, digest
from protgraph.data.graph.protein_graph import ProteinGraph, set_attributes
from protgraph.data.store.graph_store import open_store
from protgraph.featurize.plan import FeaturePlan
from protgraph.structure.residues.alphabet import UNKNOWN
from protgraph.structure.residues.residues import Residues

__all__ = [
    "AllFeatures",
    "GraphStep",
    "ModelInputs",
    "ProteinRequest",
    "StoreEntry",
    "plan_digest",
    "precomputed_graph",
]

_CODE = ("protgraph.structure", "protgraph.data", "protgraph.featurize")
_ATTRIBUTES = ("degree", "name", "residue_ids", "report")


def plan_digest(plan: FeaturePlan) -> str | None:
    """Return the digest of the precompute stage of a plan, its code included; None if the code has no source."""
    featurizers = [component_digest(featurizer) for _, featurizer in (*plan.nodes, *plan.structure, *plan.edges)]
    return None if None in featurizers else digest(plan.key(), featurizers, code_digest(*_CODE))


@dataclass(frozen=True)
class StoreEntry:
    """One protein of a graph store; calling it returns the residues. It is picklable.

    ``path``: folder of the store. ``number``: place of the protein in the store. ``ligands``: keep the ligands of the
    store.
    """

    path: str
    number: int
    ligands: bool = False

    def __call__(self) -> Residues:
        """Return the residues of the protein."""
        residues = open_store(self.path).residues(self.number)
        return residues if self.ligands else replace(residues, ligands=None)

    @property
    def sha256(self) -> str:
        """Hexadecimal SHA-256 of the file that the protein was read from."""
        return open_store(self.path).checksums[self.number]

    def mismatch(self, plan: FeaturePlan, residues: Residues) -> str:
        """Return the reason why the features of the store are not those of a plan; "" if they are.

        ``residues`` are what this entry returned, or chains of it, which have other features.
        """
        store = open_store(self.path)
        if plan.needs_ligands:
            return "the model reads ligands"
        if len(residues) != store.num_residues_of(self.number):
            return "chains are selected"
        if store.info.get("plan") is None or store.info["plan"] != plan_digest(plan):
            return "they were computed by other featurizers, options or code than those of the model"
        return ""

    def precomputed(self, plan: FeaturePlan) -> ProteinGraph:
        """Return the features of the precompute stage; see :meth:`mismatch`."""
        stored, graph = open_store(self.path)[self.number], ProteinGraph()
        read = {*_ATTRIBUTES, *plan.precomputed, *plan.attributes}
        keys = [key for key in stored.keys() if key in read]  # noqa: SIM118
        set_attributes(graph, {key: stored[key] for key in keys})
        return graph


@dataclass(frozen=True, eq=False, slots=True)
class ProteinRequest:
    """One protein of a source, with what a step requires of it.

    Parameters
    ----------
    source : str
        File or archive entry.
    protein : str
        Name of the protein in results.
    record : str, optional
        Record of a FASTA file; None for a structure.
    chains : tuple of str, optional
        Chains that make the protein; None takes all.
    read : callable, optional
        Return the residues, in place of reading ``source``; picklable if several processes are used.
    data : object
        Passed on to the step, e.g. labels.
    notes : list of str
        Messages for the user that the step appends; the pipeline copies them to the result.
    """

    source: str
    protein: str = ""
    record: str | None = None
    chains: tuple[str, ...] | None = None
    read: Callable[[], Residues] | None = None
    data: object = None
    notes: list[str] = field(default_factory=list)


class GraphStep(Protocol):
    """Make the graph of one protein; a picklable object if several processes are used."""

    def __call__(self, residues: Residues, plan: FeaturePlan, request: ProteinRequest) -> ProteinGraph:
        """Return the graph of residues; ``request`` is what was asked for."""


@dataclass(frozen=True)
class AllFeatures:
    """Graph with all features of the plan, for inspection and stores."""

    def __call__(self, residues: Residues, plan: FeaturePlan, request: ProteinRequest) -> ProteinGraph:
        graph = plan.featurize(precomputed_graph(residues, residues, plan, request))
        graph.validate()
        return graph


@dataclass(frozen=True)
class ModelInputs:
    """Graph that a trained model reads, without labels.

    Parameters
    ----------
    hidden : frozenset of str
        Information removed from the residues first; see :meth:`protgraph.structure.Residues.hide`.
    visible_types : bool
        Give the model residue types even if they are hidden from featurizers; unknown ones (X) are masked.
    """

    hidden: frozenset[str] = frozenset()
    visible_types: bool = False

    def __call__(self, residues: Residues, plan: FeaturePlan, request: ProteinRequest) -> ProteinGraph:
        visible = residues.hide(self.hidden) if self.hidden else residues
        aatype = residues.aatype if self.visible_types else None
        graph = precomputed_graph(residues, visible, plan, request, aatype=aatype)
        if self.visible_types:
            graph.masked = graph.aatype == UNKNOWN
        return graph


def precomputed_graph(
    residues: Residues,
    visible: Residues,
    plan: FeaturePlan,
    request: ProteinRequest,
    *,
    aatype: np.ndarray | None = None,
) -> ProteinGraph:
    """Return the precomputed features of a protein, from its store if that has them, else from its residues.

    If features of a store are recomputed, the reason is appended to ``request.notes``.
    """
    entry = request.read
    if isinstance(entry, StoreEntry):
        if visible is not residues:
            reason = "the task hides information"
        elif request.chains is not None:
            reason = "chains are selected"
        elif residues.alignment is not None:
            reason = "an alignment is given"
        else:
            reason = entry.mismatch(plan, residues)
        if not reason:
            return entry.precomputed(plan)
        request.notes.append(f"graph store {entry.path!r}: features are recomputed, because {reason}")
    return plan.precompute(visible, aatype=aatype)
