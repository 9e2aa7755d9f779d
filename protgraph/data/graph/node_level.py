"""Graphs whose nodes are atoms: which node stands for a residue, and labels of residues on it."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from protgraph.data.datasets.target import Target
from protgraph.errors import WiringError

__all__ = ["CA", "on_residues", "residue_nodes"]

CA = 1
"""``atom_type`` of a CA."""


def residue_nodes(graph: Data) -> Tensor:
    """The node of each residue, ``(L,)`` int64 in order, of a graph or batch: its CA, or itself in a residue graph."""
    if "atom_type" not in graph:
        return torch.arange(graph.num_nodes, device=graph.aatype.device)
    return torch.nonzero(graph.atom_type == CA).flatten()


def on_residues(y: Tensor, graph: Data, target: Target) -> Tensor:
    """Labels of residues as labels of nodes: known on the CA, unknown (−1 or NaN) on all other atoms.

    Parameters
    ----------
    y : Tensor
        ``(L, …)`` for a target per residue; labels of the protein stay as they are.
    graph : Data
        The protein.
    target : Target
        What is asked for.

    Raises
    ------
    WiringError
        It asks for pairs or edges.
    """
    if "atom_type" not in graph or target.level == "graph":
        return y
    if target.level != "node":
        raise WiringError(
            f"{target.name!r} asks of every {target.level} of residues; models of atoms predict per residue or protein"
        )
    spread = y.new_full((graph.num_nodes, *y.shape[1:]), torch.nan if y.is_floating_point() else -1)
    spread[residue_nodes(graph)] = y
    return spread
