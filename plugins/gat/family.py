"""Model family of graph attention networks, versions 1 and 2."""

from __future__ import annotations

from protgraph import Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"gat": "FAMILY"}}


def _network(
    name: str, *, version: int, dim: int = 64, heads: int = 4, depth: int = 3, k: int = 16, dropout: float = 0.1
) -> ModelSpec:
    reads = {"edge_attr": "edge_attr"}
    block = [
        component("gat", dim=dim, heads=heads, version=version, reads=reads, writes={"h": "message"}),
        component("residual", act="elu", dropout=dropout, reads={"update": "message"}),
    ]
    return ModelSpec(
        name,
        features=[
            "dihedral",
            "ca_density",
            component("knn", k=k),
            "edge_distance",
            component("edge_rbf", bins=16),
            "edge_offset",
        ],
        layers=[
            component("embed", reads=["aatype", "dihedral", "dihedral_mask", "ca_density"], dim=dim),
            component("embed", reads=["edge_rbf", "edge_offset"], dim=16, writes={"h": "edge_attr"}),
            *depth * block,
        ],
        doc=f"GAT version {version} with distances and sequence offsets in the attention.",
    )


FAMILY = Family(
    {
        "v2": _network("gat", version=2),
        "v1": _network("gat.v1", version=1),
        "wide": _network("gat.wide", version=2, dim=256, heads=8),
    },
    doc="Graph attention networks.",
)
