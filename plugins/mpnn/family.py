"""Message passing networks: messages are small networks of both residues and the edge between them."""

from __future__ import annotations

from protgraph import Family, ModelGraph, node

__all__ = ["FAMILY"]

FEATURES = [
    "dihedral",
    "ca_density",
    node("knn", k=16),
    "edge_distance",
    node("edge_rbf", bins=16),
    "edge_offset",
]


def _embed(dim: int) -> list:
    """Features of residues (h) and of edges (edge_attr)."""
    return [
        node("embed", reads=["aatype", "dihedral", "dihedral_mask", "ca_density"], dim=dim),
        node("embed", reads=["edge_rbf", "edge_offset"], dim=16, writes={"h": "edge_attr"}),
    ]


def _network(name: str, *, dim: int = 64, depth: int = 3, dropout: float = 0.1) -> ModelGraph:
    block = [
        node("mpnn", dim=dim, aggregate="mean", reads={"edge_attr": "edge_attr"}, writes={"h": "message"}),
        node("residual", dropout=dropout, reads={"update": "message"}),
    ]
    return ModelGraph(
        name,
        features=FEATURES,
        layers=[*_embed(dim), *depth * block],
        doc="Messages from source, target, distance and sequence offset; Gilmer et al. 2017, arXiv:1704.01212.",
    )


def _gilmer(name: str, *, dim: int = 64, depth: int = 3) -> ModelGraph:
    block = [
        node("edge_network", dim=dim, hidden=16, reads={"edge_attr": "edge_attr"}, writes={"h": "message"}),
        node("gru", reads={"update": "message"}),
    ]
    return ModelGraph(
        name,
        features=FEATURES,
        layers=[*_embed(dim), *depth * block],
        doc="The network of Gilmer et al. 2017: a matrix per edge, and a gated recurrent unit.",
    )


FAMILY = Family(
    {
        "small": _network("mpnn"),
        "gilmer2017": _gilmer("mpnn.gilmer2017"),
        "wide": _network("mpnn.wide", dim=128, depth=4),
    },
    doc="Message passing neural networks.",
)
