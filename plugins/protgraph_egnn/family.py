"""E(n)-equivariant graph networks: messages of distances, which change what a residue knows and where it is."""

from __future__ import annotations

from protgraph import Family, ModelGraph, node

__all__ = ["FAMILY"]

NODES = ["aatype", "dihedral", "dihedral_mask"]
EDGES = ["edge_rbf", "edge_offset"]


def _network(
    name: str, *, dim: int = 64, depth: int = 4, k: int = 16, scale: float = 10.0, attention: bool = False
) -> ModelGraph:
    motions = [f"motion_{i}" for i in range(1, depth + 1)]
    layers = [
        node(
            "egnn",
            dim=dim,
            scale=scale,
            attention=attention,
            reads={"pos": pos, "edge_attr": "edge_attr"},
            writes={"pos": "moved", "motion": motion},
        )
        for motion, pos in zip(motions, ["pos", *(depth - 1) * ["moved"]], strict=True)
    ]
    return ModelGraph(
        name,
        features=["dihedral", node("knn", k=k), "edge_distance", node("edge_rbf", bins=16), "edge_offset"],
        layers=[
            node("embed", reads=NODES, dim=dim),
            node("embed", reads=EDGES, dim=16, writes={"h": "edge_attr"}),
            *layers,
            # How far a residue was moved is a vector: heads of scalars read its length, heads of vectors itself.
            node("add", reads=motions, writes={"h": "motion"}),
            node("concat", reads=["h", "motion"]),
        ],
        readout={"h": "h", "pos": "moved"},
        doc="Satorras, Hoogeboom & Welling 2021, arXiv:2102.09844: messages of distances move residues.",
    )


FAMILY = Family(
    {
        "small": _network("egnn"),
        "satorras2021": _network("egnn.satorras2021", dim=128, depth=7, scale=1.0, attention=True),
    },
    doc="E(n)-equivariant graph neural networks.",
)
