"""Model family of SchNet: each channel is filtered by a learned function of the distance."""

from __future__ import annotations

from protgraph import Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"schnet": "FAMILY"}}


def _network(
    name: str,
    *,
    dim: int = 64,
    depth: int = 3,
    k: int = 16,
    gaussians: int = 32,
    cutoff: float = 20.0,
    offsets: bool = True,
) -> ModelSpec:
    edges = [component("embed", reads=["edge_offset"], dim=16, writes={"h": "edge_attr"})] if offsets else []
    reads = {"edge_attr": "edge_attr"} if offsets else {}
    block = [
        component("schnet", dim=dim, gaussians=gaussians, cutoff=cutoff, reads=reads, writes={"h": "message"}),
        component("add", reads=["h", "message"]),
    ]
    return ModelSpec(
        name,
        features=["dihedral", component("knn", k=k), "edge_distance", *(["edge_offset"] if offsets else [])],
        layers=[component("embed", reads=["aatype", "dihedral", "dihedral_mask"], dim=dim), *edges, *depth * block],
        doc="Schütt et al. 2018, arXiv:1712.06113: filters are functions of the distance.",
    )


def _atoms(name: str, *, dim: int = 64, depth: int = 4, gaussians: int = 32, cutoff: float = 5.0) -> ModelSpec:
    block = [
        component("schnet", dim=dim, gaussians=gaussians, cutoff=cutoff, writes={"h": "message"}),
        component("add", reads=["h", "message"]),
    ]
    return ModelSpec(
        name,
        features=[component("radius", radius=cutoff), "edge_distance"],
        layers=[component("embed", reads=["element", "atom_type", "aatype"], dim=dim), *depth * block],
        doc="Schütt et al. 2018, arXiv:1712.06113, between all heavy atoms; residues are read on their CA.",
        node_type="atom",
    )


FAMILY = Family(
    {
        "small": _network("schnet"),
        "schutt2018": _network("schnet.schutt2018", depth=6, k=30, gaussians=300, cutoff=30.0, offsets=False),
        "atom": _atoms("schnet.atom"),
    },
    doc="Continuous-filter convolutional networks.",
)
