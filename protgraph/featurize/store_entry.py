"""One protein of a graph store: its residues, and its features if those of a plan are stored."""

from __future__ import annotations

from dataclasses import dataclass, replace

from protgraph.data.cache_key import code_digest, component_digest, digest
from protgraph.data.graph.protein_graph import ProteinGraph, set_attributes
from protgraph.data.store.graph_store import open_store
from protgraph.featurize.plan import FeaturePlan
from protgraph.structure.residues.residues import Residues

__all__ = ["StoreEntry", "plan_digest"]

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
