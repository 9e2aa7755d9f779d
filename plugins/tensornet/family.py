"""Model family of TensorNet: residues carry 3 × 3 tensors that are multiplied with those of neighbors."""

from __future__ import annotations

from protgraph import Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"tensornet": "FAMILY"}}


def _network(name: str, *, dim: int, depth: int, k: int = 16, offsets: bool = False) -> ModelSpec:
    edges = [component("embed", reads=["edge_offset"], dim=16, writes={"h": "edge_attr"})] if offsets else []
    reads = {"edge_attr": "edge_attr"} if offsets else {}
    return ModelSpec(
        name,
        features=["dihedral", component("knn", k=k), "edge_vector", *(["edge_offset"] if offsets else [])],
        layers=[
            component("embed", reads=["aatype", "dihedral", "dihedral_mask"], dim=64),
            *edges,
            component("tensornet_embed", dim=dim, reads=reads),
            component("tensornet", reads=reads, repeat=depth),
            "irreps_norm",
        ],
        doc="Simeon & De Fabritiis 2023, arXiv:2306.06482: matrix products of 3 × 3 tensors.",
    )


FAMILY = Family(
    {
        "small": _network("tensornet", dim=32, depth=2, offsets=True),
        "simeon2023": _network("tensornet.simeon2023", dim=128, depth=2),
    },
    doc="Cartesian tensor networks (TensorNet).",
)
