"""Model family of GCPNet: scalars and vectors exchange messages that read frames of edges."""

from __future__ import annotations

from protgraph import Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"gcpnet": "FAMILY"}}


def _network(name: str, *, irreps: str, edge: str, dim: int, depth: int, k: int, dropout: float = 0.1) -> ModelSpec:
    edges = ["edge_rbf", "edge_offset", "edge_direction"]
    return ModelSpec(
        name,
        features=[
            *("dihedral", "orientation", "sidechain_direction", component("knn", k=k), "edge_distance"),
            *("edge_direction", component("edge_rbf", bins=16), "edge_offset"),
        ],
        layers=[
            component("embed", reads=["aatype", "dihedral", "dihedral_mask"], dim=dim),
            component("gvp", reads=["h", "orientation", "sidechain_direction"], irreps=irreps),
            component("gvp", reads=edges, irreps=edge, writes={"h": "edge_attr"}),
            "gcp_frames",
            component("gcp_conv", dropout=dropout, repeat=depth),
        ],
        doc="Morehead & Cheng 2024, arXiv:2211.02504: geometry-complete perceptrons with frames of edges.",
    )


FAMILY = Family(
    {
        "small": _network("gcpnet", irreps="64x0e+16x1o", edge="32x0e+4x1o", dim=64, depth=3, k=16),
        "morehead2024": _network(
            "gcpnet.morehead2024", irreps="128x0e+16x1o", edge="32x0e+4x1o", dim=128, depth=6, k=16
        ),
    },
    doc="Geometry-complete perceptron networks (GCPNet).",
)
