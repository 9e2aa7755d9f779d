"""Model family of graph convolutional networks."""

from __future__ import annotations

from protgraph import Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"gcn": "FAMILY"}}


def _network(name: str, *, norm: str, dim: int = 64, depth: int = 3, k: int = 16, dropout: float = 0.1) -> ModelSpec:
    block = [
        component("gcn", dim=dim, norm=norm, writes={"h": "message"}),
        component("residual", dropout=dropout, reads={"update": "message"}),
    ]
    return ModelSpec(
        name,
        features=["dihedral", "ca_density", component("knn", k=k)],
        layers=[
            component("embed", reads=["aatype", "dihedral", "dihedral_mask", "ca_density"], dim=dim),
            *depth * block,
        ],
        doc="Kipf & Welling 2017, arXiv:1609.02907, with skip connections.",
    )


FAMILY = Family(
    {
        "kipf2017": _network("gcn", norm="symmetric"),
        "mean": _network("gcn.mean", norm="mean"),
        "deep": _network("gcn.deep", norm="symmetric", dim=128, depth=6),
    },
    doc="Graph convolutional networks.",
)
