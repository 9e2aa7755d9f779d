"""Model family of ViSNet: scalars, vectors and edges exchange messages with attention."""

from __future__ import annotations

from protgraph import ComponentSpec, Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"visnet": "FAMILY"}}


def _network(
    name: str, *, dim: int, depth: int, lmax: int, k: int, vertex: bool = False, offsets: bool = False
) -> ModelSpec:
    edges = [component("embed", reads=["edge_offset"], dim=16, writes={"h": "edge_attr"})] if offsets else []
    reads = {"edge_attr": "edge_attr"} if offsets else {}
    # Vectors are 0 in the first block, where an update of edges would add 0.
    start = component("visnet_embed", dim=dim, reads=reads, writes={"edge_h": "edge_0"})
    blocks: list[ComponentSpec] = [component("visnet", lmax=lmax, reads={"edge_h": "edge_0"})]
    for number in range(1, depth):
        # A block reads the edges before its own update of them, which reads the vectors before the block.
        current, updated = f"edge_{number - 1}", f"edge_{number}"
        if number < depth - 1:
            blocks.append(
                component("visnet_edge", vertex=vertex, reads={"edge_h": current}, writes={"edge_h": updated})
            )
        blocks.append(component("visnet", lmax=lmax, reads={"edge_h": current, "v": "v"}))
    return ModelSpec(
        name,
        features=["dihedral", component("knn", k=k), "edge_vector", *(["edge_offset"] if offsets else [])],
        layers=[
            component("embed", reads=["aatype", "dihedral", "dihedral_mask"], dim=dim),
            *edges,
            start,
            *blocks,
            "layer_norm",
            component("concat", reads=["h", "v"]),
        ],
        doc="Wang et al. 2024, Nat. Commun. 15, 313: scalars, vectors and edges exchange messages.",
    )


FAMILY = Family(
    {
        "small": _network("visnet", dim=64, depth=3, lmax=1, k=16, offsets=True),
        "wang2024": _network("visnet.wang2024", dim=128, depth=6, lmax=1, k=16),
        "order2": _network("visnet.order2", dim=64, depth=3, lmax=2, k=16, vertex=True, offsets=True),
    },
    doc="Vector-scalar interactive message passing networks (ViSNet).",
)
