"""Atom graphs: the node that represents each residue, and residue labels mapped to nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch_geometric.data import Data

from protgraph.errors import WiringError

if TYPE_CHECKING:
    from protgraph.data.datasets.target import Target

__all__ = ["CA", "labels_on_nodes", "residue_nodes"]

CA = 1
"""``atom_type`` of CA."""


def residue_nodes(graph: Data) -> Tensor:
    """Return the node of each residue, ``(L,)`` int64: the CA in an atom graph, the node itself in a residue graph."""
    if "atom_type" not in graph:
        device = next(value.device for value in graph.to_dict().values() if isinstance(value, Tensor))
        return torch.arange(graph.num_nodes, device=device)
    return torch.nonzero(graph.atom_type == CA).flatten()


def labels_on_nodes(y: Tensor, graph: Data, target: Target) -> Tensor:
    """Map residue labels to nodes: in an atom graph the CA has the label, other atoms are unknown (−1 or NaN).

    Parameters
    ----------
    y : Tensor
        ``(L, …)`` for a target per residue. Labels per protein are returned unchanged.
    graph : Data
        Graph of the protein.

    Returns
    -------
    Tensor
        ``(N, …)`` for the nodes of an atom graph and a target per residue; else ``y``.

    Raises
    ------
    WiringError
        If the target is per pair or per edge and the nodes are atoms.
    """
    if "atom_type" not in graph or target.level == "graph":
        return y
    if target.level != "node":
        raise WiringError(
            f"target {target.name!r} is per {target.level}. Atom graphs allow targets per residue and per protein."
        )
    node_labels = y.new_full((graph.num_nodes, *y.shape[1:]), torch.nan if y.is_floating_point() else -1)
    node_labels[residue_nodes(graph)] = y
    return node_labels
