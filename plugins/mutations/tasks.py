"""Tasks of mutations: the surroundings of mutated residues as a graph, without the types that change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from protgraph.data.datasets.target import Target
from protgraph.data.graph.protein_graph import ProteinGraph, set_attributes
from protgraph.data.graph.subgraph import select_nodes
from protgraph.featurize.plan import FeaturePlan
from protgraph.structure.mutation import DDG_UNIT, Mutation, find_residues
from protgraph.structure.residues.alphabet import ALPHABET, UNKNOWN
from protgraph.structure.residues.residues import Residues
from protgraph.task import metrics as m
from protgraph.task.input_masking import InputMasking
from protgraph.task.losses import huber_error, squared_error
from protgraph.task.task import Task

__all__ = ["DDG_BINDING", "DDG_STABILITY", "FITNESS", "NEAREST", "hide_mutated", "mutation_graph", "nearest_residues"]
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
    graph = plan.precompute(hide_mutated(residues, rows))
    types = {"wild_type": [m.wild_type for m in mutations], "mutant": [m.mutant for m in mutations]}
    for name, letters in types.items():
        values = torch.full((len(residues),), UNKNOWN)
        values[torch.from_numpy(rows)] = torch.tensor([ALPHABET.index(letter) for letter in letters], dtype=torch.long)
        set_attributes(graph, {name: values})
    if plan.node_type != "residue":
        return graph
    return select_nodes(graph, torch.from_numpy(nearest_residues(residues, rows, nearest)))


def hide_mutated(residues: Residues, rows: np.ndarray) -> Residues:
    """Return residues of which those in ``rows`` ``(M,)`` have type X and only the atoms N, CA, C and O."""
    hidden = np.zeros(len(residues), bool)
    hidden[rows] = True
    changed = replace(
        residues,
        aatype=np.where(hidden, UNKNOWN, residues.aatype),
        res_name=np.where(hidden, "UNK", residues.res_name),
        report=residues.report.without("modified", "unknown"),
    )
    return changed.without_sidechains(hidden)


def nearest_residues(residues: Residues, rows: np.ndarray, number: int) -> np.ndarray:
    """Return a mask ``(N,)`` bool of the ``number`` residues with the nearest CA for each of ``rows`` ``(M,)``."""
    keep = np.zeros(len(residues), bool)
    pos = residues.pos.astype(np.float64)
    for row in rows:
        distance = np.linalg.norm(pos - pos[row], axis=1)  # (N,)
        keep[np.argsort(np.nan_to_num(distance, nan=np.inf), kind="stable")[:number]] = True
    return keep


def _task(name: str, unit: str, doc: str) -> Task:
    return Task(
        name,
        Target(name, "graph", "regression", 1, (name,), unit=unit, head="mutation"),
        squared_error if unit != DDG_UNIT else huber_error,  # measured ΔΔG have outliers of 10 kcal/mol
        (m.pearson_overall, m.spearman_overall, m.rmse, m.mae),
        "pearson_overall",
        InputMasking(mutation_environment=NEAREST),
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
