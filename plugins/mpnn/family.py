"""Model family of message passing networks: messages from source, target and edge features."""

from __future__ import annotations

from protgraph import Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"mpnn": "FAMILY"}}

FEATURES = [
    "dihedral",
    "ca_density",
    component("knn", k=16),
    "edge_distance",
    component("edge_rbf", bins=16),
    "edge_offset",
]


def _embed(dim: int, *, sequence: bool = True) -> list:
    """Return the embeddings of residues (h) and of edges (edge_attr)."""
    types = ["aatype"] if sequence else []
    return [
        component("embed", reads=[*types, "dihedral", "dihedral_mask", "ca_density"], dim=dim),
        component("embed", reads=["edge_rbf", "edge_offset"], dim=16, writes={"h": "edge_attr"}),
    ]


def _network(name: str, *, dim: int = 64, depth: int = 3, dropout: float = 0.1, sequence: bool = True) -> ModelSpec:
    block = [
        component("mpnn", dim=dim, aggregate="mean", reads={"edge_attr": "edge_attr"}, writes={"h": "message"}),
        component("residual", dropout=dropout, reads={"update": "message"}),
    ]
    return ModelSpec(
        name,
        features=FEATURES,
        layers=[*_embed(dim, sequence=sequence), *depth * block],
        doc="Messages from source, target, distance and sequence offset; Gilmer et al. 2017, arXiv:1704.01212."
        + ("" if sequence else " Without residue types."),
    )


def _gilmer(name: str, *, dim: int = 64, depth: int = 3) -> ModelSpec:
    block = [
        component("edge_network", dim=dim, hidden=16, reads={"edge_attr": "edge_attr"}, writes={"h": "message"}),
        component("gru", reads={"update": "message"}),
    ]
    return ModelSpec(
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
        "structure": _network("mpnn.structure", sequence=False),
    },
    doc="Message passing neural networks.",
)
