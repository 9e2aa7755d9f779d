"""The order of edges, on which every reduction over neighbors relies: by target, K each where ``degree`` says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from protgraph.errors import FieldError

if TYPE_CHECKING:
    from torch_geometric.data import Data

__all__ = ["check_edges"]


def check_edges(graph: Data) -> None:
    """Check ``edge_index`` of a graph or batch: shape, nodes that are there, order, and what ``degree`` says.

    Raises
    ------
    FieldError
        Naming the graph, what is wrong, and what to do; PyG's transforms leave edges in another order.
    """
    if torch.compiler.is_compiling():  # it looks at numbers, which are not there while a graph is traced
        return
    index, name = graph.edge_index, _name(graph)
    if index.dim() != 2 or index.size(0) != 2 or index.dtype != torch.long:
        raise FieldError(f"edge_index of {name} is {tuple(index.shape)} {index.dtype}; it must be (2, E) int64")
    if index.numel() == 0:
        return
    low, high = torch.aminmax(index)
    if int(low) < 0 or int(high) >= graph.num_nodes:
        raise FieldError(f"edge_index of {name} names node {int(high)}; there are {graph.num_nodes}")
    if bool((index[1, 1:] < index[1, :-1]).any()):
        raise FieldError(f"edge_index of {name} is not sorted by target (row 1); take graph.sort(sort_by_row=False)")
    degree = graph.get("degree")
    if degree is None or isinstance(degree, Tensor):  # PyG's own batching makes a tensor of each protein's
        return
    regular = torch.arange(graph.num_nodes, device=index.device).unsqueeze(1)  # (N, 1)
    if index.size(1) != len(regular) * degree or not bool((index[1].view(-1, degree) == regular).all()):
        raise FieldError(
            f"graph {name} says degree {degree}, but its nodes do not all have that many edges;\n"
            "where edges were added or left out, delete what it says: del graph.degree"
        )


def _name(graph: Data) -> str:
    if "name" not in graph:
        return "a graph"
    return repr(graph.name) if isinstance(graph.name, str) else f"a batch of {', '.join(map(repr, graph.name))}"
