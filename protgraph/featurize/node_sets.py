"""Node sets: nodes beside those of a graph, their fields, and the edges that join both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from protgraph.data.graph.fields import NODES
from protgraph.data.graph.levels import EdgeEnds
from protgraph.data.graph.protein_graph import CA
from protgraph.featurize.base import EdgeList, NodeFeaturizer, NodeList
from protgraph.structure.neighbors import sort_edges
from protgraph.structure.residues.atoms import NodeAtoms
from protgraph.structure.residues.residues import Residues

__all__ = ["ResidueNodes", "join_members", "member_edge_sets", "nodes_of_graph", "values_at"]
ENTRY_POINTS = {"protgraph.featurizers": {"residues": "ResidueNodes"}}


class ResidueNodes(NodeFeaturizer):
    """The residues as a node set, at their CA; beside the atoms of an atom graph.

    Writes
    ------
    residues : the node set; its fields are ``residues_pos``, ``residues_aatype``, …
    aatype, chain, res_id, seq_pos : (M,) int64
    backbone, backbone_mask : (M, 4, 3) Å and (M, 4)

    Notes
    -----
    ``to_residues`` joins the atoms of each residue to it, and ``from_residues`` the residue to its atoms. In a residue
    graph, the nodes of the set are those of the graph. Ligands are not among the residues. ``residues_aatype`` is X
    where the task hides types from featurizers, also if a task corrupts those of the graph (``visible_types``).
    """

    writes: ClassVar[tuple[str, ...]] = (
        *("residues", "aatype", "chain", "res_id", "seq_pos", "backbone", "backbone_mask"),
    )
    are_residues: ClassVar[bool] = True

    def __call__(self, residues: Residues) -> NodeList:
        fields = {
            "aatype": residues.aatype,
            "chain": residues.chain_number,
            "res_id": residues.res_id,
            "seq_pos": residues.seq_pos,
            "backbone": residues.backbone,
            "backbone_mask": residues.backbone_mask,
        }
        return NodeList(residues.pos, np.arange(len(residues)), fields)

    def differentiable(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Return the positions of CA, in a residue graph also the backbone."""
        if "atom_type" not in f:
            return {name: f[name] for name in ("pos", "backbone") if name in f}
        return {"pos": f["pos"][torch.nonzero(f["atom_type"] == CA).flatten()]}


def member_edge_sets(nodes: str) -> dict[str, EdgeEnds]:
    """Return the edge sets between a node set and the nodes of the graph in the same residue.

    Examples
    --------
    >>> list(member_edge_sets("points"))
    ['to_points', 'from_points']
    """
    return {f"to_{nodes}": EdgeEnds(NODES, nodes), f"from_{nodes}": EdgeEnds(nodes, NODES)}


def nodes_of_graph(nodes: NodeAtoms, num_residues: int) -> NodeList:
    """Return the nodes of the graph as a node set; atoms of ligands belong to no residue."""
    return NodeList(nodes.pos, np.where(nodes.residue < num_residues, nodes.residue, -1))


def join_members(sources: NodeList, targets: NodeList) -> EdgeList:
    """Return the edges between all nodes of two sets that belong to the same residue."""
    order = np.argsort(sources.residue, kind="stable")
    residue = sources.residue[order]  # ascending
    first, last = (residue.searchsorted(targets.residue, side) for side in ("left", "right"))
    count = np.where(targets.residue < 0, 0, last - first)  # (T,) sources of each target
    target = np.repeat(np.arange(len(count)), count)
    place = np.arange(len(target)) - np.repeat(np.cumsum(count) - count, count)  # among the sources of the target
    edges = np.stack([order[first[target] + place], target])
    return EdgeList(*sort_edges(targets.pos, edges, sources.pos))


def values_at(nodes: NodeList, of_residues: np.ndarray) -> np.ndarray:
    """Return the value ``(M, …)`` of the residue of each node; 0 for nodes that belong to none."""
    values = of_residues[nodes.residue]
    values[nodes.residue < 0] = 0
    return values
