"""Model family of graph transformers: attention over spatial neighbors, with edge features in keys and values."""

from __future__ import annotations

from protgraph import Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"graph_transformer": "FAMILY"}}


def _network(
    name: str, *, dim: int = 64, heads: int = 4, depth: int = 3, k: int = 16, beta: bool = False, dropout: float = 0.1
) -> ModelSpec:
    given = {"h": "normed", "edge_attr": "edge_attr"}
    block = [
        component("layer_norm", writes={"h": "normed"}),
        component("graph_transformer", dim=dim, heads=heads, beta=beta, reads=given, writes={"h": "message"}),
        component("residual", act="none", norm="none", dropout=dropout, reads={"update": "message"}),
        component("layer_norm", writes={"h": "normed"}),
        component("mlp", hidden=2 * dim, reads={"h": "normed"}, writes={"h": "forward"}),
        component("residual", act="none", norm="none", dropout=dropout, reads={"update": "forward"}),
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
            "layer_norm",
        ],
        doc="Pre-norm transformer blocks over neighbors in space; Shi et al. 2021, arXiv:2009.03509.",
    )


FAMILY = Family(
    {
        "small": _network("graph_transformer"),
        "gated": _network("graph_transformer.gated", beta=True),
        "wide": _network("graph_transformer.wide", dim=256, heads=8),
    },
    doc="Graph transformers.",
)
