"""Model family of tensor field networks: scalars and vectors convolved with equivariant filters."""

from __future__ import annotations

from protgraph import Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"tfn": "FAMILY"}}

FEATURES = [
    "dihedral",
    "ca_density",
    "orientation",
    "sidechain_direction",
    component("knn", k=16),
    "edge_vector",
    "edge_distance",
    component("edge_rbf", bins=16),
    "edge_offset",
]


def _network(
    name: str, *, irreps: str = "64x0e+16x1o", dim: int = 64, depth: int = 2, lmax: int = 1, mode: str = "channelwise"
) -> ModelSpec:
    convolve = component(
        "tfn", irreps=irreps, lmax=lmax, mode=mode, reads={"edge_attr": "edge_attr"}, writes={"h": "message"}
    )
    block = [convolve, component("add", reads=["h", "message"]), "irreps_norm"]
    return ModelSpec(
        name,
        features=FEATURES,
        layers=[
            component("embed", reads=["aatype", "dihedral", "dihedral_mask", "ca_density"], dim=dim),
            component("embed", reads=["edge_rbf", "edge_offset"], dim=16, writes={"h": "edge_attr"}),
            component("irreps_linear", irreps=irreps, reads=["h", "orientation", "sidechain_direction"]),
            *depth * block,
        ],
        doc="Thomas et al. 2018, arXiv:1802.08219: filters of radial functions times spherical harmonics.",
    )


FAMILY = Family(
    {
        "small": _network("tfn"),
        "full": _network("tfn.full", mode="full"),
        "order2": _network("tfn.order2", irreps="64x0e+32x1o", lmax=2, depth=4),
    },
    doc="Tensor field networks.",
)
