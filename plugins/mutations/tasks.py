"""Tasks of mutations: the surroundings of mutated residues as a graph, without the types that change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from protgraph_plugins.mutations.dataset import MutationLabels
from protgraph_plugins.mutations.head import MutationHead
from protgraph_plugins.mutations.mutation import Mutation
from protgraph_plugins.mutations.residue_index import find_residues
from protgraph_plugins.mutations.scorer import DDG_UNIT
from torch import Tensor

from protgraph.data.datasets import Target
from protgraph.data.graph import ProteinGraph, edge_set_of, node_sets_of, set_attributes
from protgraph.errors import LabelError, WiringError
from protgraph.featurize import FeaturePlan, ProteinRequest
from protgraph.registry import metrics
from protgraph.structure import ALPHABET, Residues
from protgraph.structure.residues import UNKNOWN
from protgraph.task import Task, huber_error, squared_error

__all__ = [
    "DDG_BINDING",
    "DDG_STABILITY",
    "FITNESS",
    "NEAREST",
    "MutationGraphStep",
    "mutation_graph",
    "nearest_residues",
    "select_nodes",
]
ENTRY_POINTS = {
    "protgraph.tasks": {"ddg_binding": "DDG_BINDING", "ddg_stability": "DDG_STABILITY", "fitness": "FITNESS"}
}

#: Residues of a graph for each mutated one.
NEAREST = 48


def mutation_graph(
    residues: Residues, mutations: Sequence[Mutation], plan: FeaturePlan, *, nearest: int = NEAREST
) -> ProteinGraph:
    """Return the graph of the residues nearest to mutated ones, which have no type and no side chain.

    Features are computed on the complete protein, before the other residues are removed. The fields ``wild_type`` and
    ``mutant`` have the types that change. The graph of the reverse mutation differs in these two fields only.

    Parameters
    ----------
    residues : Residues
        The complete wild type.
    mutations : sequence of Mutation
    plan : FeaturePlan
    nearest : int
        Residues for each mutated one, itself included, by distance of CA.

    Raises
    ------
    MutationError
        The structure does not have a residue, or another type there.
    """
    rows = find_residues(residues, mutations)
    is_mutated = np.zeros(len(residues), bool)
    is_mutated[rows] = True
    graph = plan.precompute(residues.without_types(is_mutated))
    letters = [m.wild_type for m in mutations], [m.mutant for m in mutations]
    for name, letters_of_field in zip(MutationHead.task_fields, letters, strict=True):
        values = torch.full((len(residues),), UNKNOWN)
        codes = [ALPHABET.index(letter) for letter in letters_of_field]
        values[torch.from_numpy(rows)] = torch.tensor(codes, dtype=torch.long)
        set_attributes(graph, {name: values})
    if plan.node_type != "residue":
        return graph
    return select_nodes(graph, torch.from_numpy(nearest_residues(residues, rows, nearest)))


def nearest_residues(residues: Residues, rows: np.ndarray, number: int) -> np.ndarray:
    """Return a mask ``(N,)`` bool of the ``number`` residues with the nearest CA for each of ``rows`` ``(M,)``."""
    keep = np.zeros(len(residues), bool)
    pos = residues.pos.astype(np.float64)
    for row in rows:
        distance = np.linalg.norm(pos - pos[row], axis=1)  # (N,)
        keep[np.argsort(np.nan_to_num(distance, nan=np.inf), kind="stable")[:number]] = True
    return keep


def select_nodes(graph: ProteinGraph, keep: Tensor) -> ProteinGraph:
    """Return the nodes in a mask and the edges between them, in the same order.

    Not PyG's ``Data.subgraph``: it takes fields for those of nodes or edges by their length, here the field table has
    the levels, and ``degree`` is removed, because nodes at the border lose edges (PyG 2.8.1, 2026-11-23).

    Parameters
    ----------
    graph : ProteinGraph
        Graph of one protein, without fields of pairs.
    keep : Tensor
        ``(N,)`` bool.

    Raises
    ------
    WiringError
        The graph has node sets.
    """
    if sets := node_sets_of(graph.keys()):
        raise WiringError(f"{graph.name}: nodes of {sets[0]!r} cannot be selected. Allowed: models without node sets.")
    selected, values = ProteinGraph(), {}
    kept_edges: dict[str, Tensor] = {}
    number = keep.cumsum(0) - 1  # (N,) new number of each kept node
    for name in graph.keys():  # noqa: SIM118
        if edge_set_of(name) is not None:
            level = graph.level(name)
            kept_edges[level] = keep[graph[name]].all(0)  # (E,)
            values[name] = number[graph[name][:, kept_edges[level]]]
    for name, value in graph.to_dict().items():
        if name == "degree" or name in values:
            continue
        if graph.is_node_attr(name):
            value = value[keep]
        elif isinstance(value, Tensor) and graph.level(name) in kept_edges:
            value = value[kept_edges[graph.level(name)]]
        elif name == "residue_ids":
            value = value[keep.numpy()]
        values[name] = value
    set_attributes(selected, values)
    return selected


@dataclass(frozen=True)
class MutationGraphStep:
    """Step of the pipeline that makes the graph of a variant from the visible part of its structure."""

    task: str

    def __call__(self, residues: Residues, plan: FeaturePlan, request: ProteinRequest) -> ProteinGraph:
        """Return the graph around the mutated residues of an example; ``request.data`` is its labels."""
        labels = request.data
        if not isinstance(labels, MutationLabels):
            raise LabelError(
                f"task {self.task!r} needs mutations, and {request.protein!r} has none. Use a dataset of mutations, "
                "e.g. 'ddg_stability'."
            )
        return mutation_graph(residues, labels.mutations, plan)


def _task(name: str, unit: str, doc: str) -> Task:
    return Task(
        name,
        Target(name, "graph", "regression", 1, (name,), unit=unit, head="mutation"),
        squared_error if unit != DDG_UNIT else huber_error,  # measured ΔΔG have outliers of 10 kcal/mol
        tuple(metrics.get(metric) for metric in ("pearson_overall", "spearman_overall", "rmse", "mae")),
        "pearson_overall",
        make_graph=MutationGraphStep(name),
        doc=doc,
    )


DDG_STABILITY = _task(
    "ddg_stability",
    DDG_UNIT,
    "Change of folding free energy on mutation, ΔΔG = ΔG(mutant) − ΔG(wild type), kcal/mol; positive = destabilizing.",
)
DDG_BINDING = _task(
    "ddg_binding",
    DDG_UNIT,
    "Change of binding free energy on mutation, ΔΔG = R T ln(Kd of mutant / Kd of wild type), kcal/mol; positive = the "
    "mutant binds worse.",
)
FITNESS = _task(
    "fitness",
    "dimensionless",
    "Change of fitness on mutation, score(mutant) in the unit of each deep mutational scan; higher = fitter.",
)
