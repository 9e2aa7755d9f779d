"""Part of a protein graph: some nodes, and the edges between them."""

from __future__ import annotations

from torch import Tensor

from protgraph.data.graph.protein_graph import ProteinGraph, set_attributes

__all__ = ["select_nodes"]


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
    """
    part, values = ProteinGraph(), {}
    edges = None
    if "edge_index" in graph:
        edges = keep[graph.edge_index].all(0)  # (E,)
        number = keep.cumsum(0) - 1  # (N,) new number of each kept node
        values["edge_index"] = number[graph.edge_index[:, edges]]
    for name, value in graph.to_dict().items():
        if name in ("edge_index", "degree"):
            continue
        if graph.is_node_attr(name):
            value = value[keep]
        elif graph.is_edge_attr(name):
            value = value[edges]
        elif name == "residue_ids":
            value = value[keep.numpy()]
        values[name] = value
    set_attributes(part, values)
    return part
