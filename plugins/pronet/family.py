"""Model family of ProNet: filters of distances, polar angles and torsions between residues."""

from __future__ import annotations

from protgraph import Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"pronet": "FAMILY"}}


def _network(
    name: str, *, dim: int, depth: int, cutoff: float, radius: bool = False, dropout: float = 0.0
) -> ModelSpec:
    edges = component("radius", radius=cutoff) if radius else component("knn", k=16)
    return ModelSpec(
        name,
        features=["dihedral", "orientation", edges, "edge_vector", "edge_offset"],
        layers=[
            component("embed", reads=["aatype", "dihedral", "dihedral_mask"], dim=dim),
            component("embed", reads=["edge_offset"], dim=16, writes={"h": "edge_attr"}),
            component("pronet", dim=dim, cutoff=cutoff, dropout=dropout, repeat=depth),
        ],
        doc="Wang et al. 2023, arXiv:2207.12600: complete geometry of residues by angles.",
    )


FAMILY = Family(
    {
        "small": _network("pronet", dim=64, depth=3, cutoff=20.0),
        "wang2023": _network("pronet.wang2023", dim=128, depth=4, cutoff=10.0, radius=True, dropout=0.2),
    },
    doc="Complete 3D graph networks of residues (ProNet).",
)
