"""Model family of CDConv: kernels depend on the offset along the sequence and on the geometry of both residues."""

from __future__ import annotations

from protgraph import Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"cdconv": "FAMILY"}}


def _network(name: str, *, dim: int, depth: int, kernels: int, offsets: int, radius: float | None) -> ModelSpec:
    edges = component("knn", k=16) if radius is None else component("radius", radius=radius)
    convolution = component(
        "cdconv", dim=dim, kernels=kernels, offsets=offsets, radius=radius or 12.0, writes={"h": "m"}
    )
    block = [convolution, component("residual", act="leaky_relu", dropout=0.1, reads={"update": "m"})]
    return ModelSpec(
        name,
        features=["dihedral", "residue_frame", edges, "edge_distance", "edge_frame"],
        layers=[
            component("embed", reads=["aatype", "dihedral", "dihedral_mask"], dim=dim),
            component("concat", reads=["edge_local", "edge_rotation", "edge_dist"], writes={"h": "edge_attr"}),
            *depth * block,
        ],
        doc="Fan et al. 2023 (ICLR): kernels continuous in space and discrete along the sequence.",
    )


FAMILY = Family(
    {
        "small": _network("cdconv", dim=64, depth=3, kernels=16, offsets=5, radius=None),
        "fan2023": _network("cdconv.fan2023", dim=128, depth=8, kernels=24, offsets=5, radius=12.0),
    },
    doc="Continuous-discrete convolutional networks (CDConv).",
)
