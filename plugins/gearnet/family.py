"""Model families GearNet (relational convolutions) and GearNet-Edge (with messages between edges)."""

from __future__ import annotations

from protgraph import ComponentSpec, Family, ModelSpec, component

__all__ = ["EDGE_FAMILY", "FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"gearnet": "FAMILY", "gearnet_edge": "EDGE_FAMILY"}}

RELATIONS = [
    *(component("sequence_offset", offset=k) for k in (-2, -1, 1, 2)),
    component("radius", radius=10.0, separation=5),
    component("knn", k=10, separation=5),
]
ON_EDGES = [
    "edge_vector",
    "edge_distance",
    component("edge_rbf", bins=16),
    "edge_residue",
    component("edge_offset", clip=10),
]


def _small(name: str, *, dim: int = 64, depth: int = 3, dropout: float = 0.1) -> ModelSpec:
    block = [
        component("gearnet", dim=dim, writes={"h": "message"}),
        component("residual", dropout=dropout, reads={"update": "message"}),
    ]
    return ModelSpec(
        name,
        features=["dihedral", *RELATIONS],
        layers=[_nodes(dim), *depth * block],
        doc="Relations: offsets along the chain, radius, nearest neighbors; Zhang et al. 2022, arXiv:2203.06125.",
    )


def _small_edge(name: str, *, dim: int = 64, depth: int = 3, dropout: float = 0.1) -> ModelSpec:
    block = [
        component("gearnet_edge", dim=dim),
        component("gearnet", dim=dim, reads={"edge_h": "edge_h"}, writes={"h": "message"}),
        component("residual", dropout=dropout, reads={"update": "message"}),
    ]
    edges = component(
        "embed", reads=["edge_residue", "edge_kind", "edge_offset", "edge_rbf"], dim=32, writes={"h": "edge_h"}
    )
    return ModelSpec(
        name,
        features=["dihedral", *RELATIONS, *ON_EDGES],
        layers=[_nodes(dim), edges, *depth * block],
        doc="GearNet with messages between edges that meet, by angle; Zhang et al. 2022, arXiv:2203.06125.",
    )


def _zhang(name: str, *, edges: bool, dim: int = 512, depth: int = 6) -> ModelSpec:
    """Return the network with the authors' sizes; the head reads every layer, the first has no shortcut."""
    given = ["edge_residue", "edge_kind", "edge_offset", "edge_dist"]
    layers = [component("concat", reads=given, writes={"h": "edge_h"})] if edges else []
    h = "residue_one_hot"
    for k in range(depth):
        if edges:  # as wide as the nodes that are read with them
            layers.append(component("gearnet_edge", dim=dim if k else 21, norm="batch"))
        reads = {"h": h} | ({"edge_h": "edge_h"} if edges else {})
        layers.append(
            component("gearnet", dim=dim, norm="batch", shortcut=k > 0, reads=reads, writes={"h": f"h{k + 1}"})
        )
        h = f"h{k + 1}"
    return ModelSpec(
        name,
        features=["residue_one_hot", *RELATIONS, *(ON_EDGES if edges else ())],
        layers=[*layers, component("concat", reads=[f"h{k + 1}" for k in range(depth)])],
        doc="The network of Zhang et al. 2022, arXiv:2203.06125, with its sizes and batch normalization.",
    )


def _nodes(dim: int) -> ComponentSpec:
    return component("embed", reads=["aatype", "dihedral", "dihedral_mask"], dim=dim)


FAMILY = Family(
    {"small": _small("gearnet"), "zhang2022": _zhang("gearnet.zhang2022", edges=False)},
    doc="Relational graph convolutions over typed edges.",
)
EDGE_FAMILY = Family(
    {"small": _small_edge("gearnet_edge"), "zhang2022": _zhang("gearnet_edge.zhang2022", edges=True)},
    doc="Relational graph convolutions with messages between edges.",
)
