"""Line graph: an edge set whose nodes are edges, for layers that pass messages between adjacent edges.

Not PyG's ``LineGraph``: it loops over edges in Python, and numbers edges by source (PyG 2.8.1, 2026-11-22).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from protgraph.data.graph import Conformity, FieldSpec, register_field
from protgraph.featurize import TensorFeaturizer
from protgraph.ops import Edges, unit_or_zero

__all__ = ["EdgeCosine", "LineGraph"]
ENTRY_POINTS = {"protgraph.featurizers": {"line_graph": "LineGraph", "edge_cosine": "EdgeCosine"}}

register_field(FieldSpec("line", "edge", "object", doc="line graph: protgraph.ops.Edges between adjacent edges"))
register_field(FieldSpec("node_vec", "node", "1x1o", doc="vector of a node; in a line graph that of an edge"))
register_field(FieldSpec("edge_cosine", "edge", "1x0e", doc="cosine between a vector of j and minus that of i"))


class LineGraph(TensorFeaturizer):
    """Line graph of the edges: the nodes are the edges, and each edge j → i has the neighbors k → j with k ≠ i.

    It is built once for a batch, and all layers and featurizers with ``edges="line"`` share it. Their ``h`` is a field
    of edges: ``component("gcn", edges="line", reads={"h": "edge_h"}, writes={"h": "edge_h"})``.

    Reads
    -----
    edges : the edges j → i

    Writes
    ------
    line : the edges (k → j) → (j → i) between edges

    Notes
    -----
    The number of pairs depends on the edges, about E K for K neighbors of each node; counting them synchronizes with
    the device.
    """

    reads: ClassVar[tuple[str, ...]] = ("edges",)
    writes: ClassVar[tuple[str, ...]] = ("line",)
    conformity = Conformity(
        expected_failures={
            "device": "the number of adjacent edges depends on the edges",
            "cuda": "the number of adjacent edges depends on the edges",
        }
    )

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Edges]:  # type: ignore[override]  # an object, not a tensor
        edges: Edges = f["edges"]
        source, target = edges.index
        count = edges.count.index_select(0, source)  # (E,) edges k → j of each edge j → i
        second = torch.repeat_interleave(torch.arange(edges.num_edges, device=edges.device), count)  # (T,)
        first_pair = count.cumsum(0) - count  # (E,)
        place = torch.arange(second.numel(), device=edges.device) - first_pair.index_select(0, second)
        first = edges.ptr.index_select(0, source.index_select(0, second)) + place  # (T,) an edge k → j
        is_other = source.index_select(0, first) != target.index_select(0, second)  # k ≠ i
        return {"line": Edges(torch.stack([first[is_other], second[is_other]]), edges.num_edges)}


class EdgeCosine(TensorFeaturizer):
    """Cosine between the vector of j and minus the vector of i; in a line graph of the angle k, j, i at atom j.

    ``component("edge_cosine", edges="line", reads={"node_vec": "edge_vec"})`` writes ``line_edge_cosine``.

    Reads
    -----
    node_vec : (N, 3), 1x1o; in a line graph the vectors of edges
    edges : the edges j → i

    Writes
    ------
    edge_cosine : (E, 1), 1x0e; 0 for zero vectors
    """

    reads: ClassVar[tuple[str, ...]] = ("node_vec", "edges")
    writes: ClassVar[tuple[str, ...]] = ("edge_cosine",)

    def __call__(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        unit = unit_or_zero(f["node_vec"])  # (N, 3)
        return {"edge_cosine": -(f["edges"].source(unit) * f["edges"].target(unit)).sum(1, keepdim=True)}
