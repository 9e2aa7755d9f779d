"""Model family of E(n)-equivariant graph networks: messages from distances update features and coordinates."""

from __future__ import annotations

from protgraph import ComponentSpec, Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"egnn": "FAMILY"}}

NODES = ["aatype", "dihedral", "dihedral_mask"]
EDGES = ["edge_rbf", "edge_offset"]
PAPER = "Satorras, Hoogeboom & Welling 2021, arXiv:2102.09844"


def _layers(*, dim: int, depth: int, scale: float, attention: bool = False) -> list[ComponentSpec]:
    motions = [f"motion_{i}" for i in range(1, depth + 1)]
    rounds = [
        component(
            "egnn",
            dim=dim,
            scale=scale,
            attention=attention,
            reads={"pos": pos, "edge_attr": "edge_attr"},
            writes={"pos": "moved", "motion": motion},
        )
        for motion, pos in zip(motions, ["pos", *(depth - 1) * ["moved"]], strict=True)
    ]
    # The total displacement of a node is a vector: scalar heads read its length, vector heads the vector.
    total = component("add", reads=motions, writes={"h": "motion"})
    return [*rounds, total, component("concat", reads=["h", "motion"])]


def _network(
    name: str, *, dim: int = 64, depth: int = 4, k: int = 16, scale: float = 10.0, attention: bool = False
) -> ModelSpec:
    return ModelSpec(
        name,
        features=["dihedral", component("knn", k=k), "edge_distance", component("edge_rbf", bins=16), "edge_offset"],
        layers=[
            component("embed", reads=NODES, dim=dim),
            component("embed", reads=EDGES, dim=16, writes={"h": "edge_attr"}),
            *_layers(dim=dim, depth=depth, scale=scale, attention=attention),
        ],
        readout={"h": "h", "pos": "moved"},
        doc=f"{PAPER}: messages of distances move residues.",
    )


def _atoms(name: str, *, dim: int = 64, depth: int = 4, cutoff: float = 4.5) -> ModelSpec:
    return ModelSpec(
        name,
        features=[component("radius", radius=cutoff), "edge_distance", component("edge_rbf", bins=16, cutoff=cutoff)],
        layers=[
            component("embed", reads=["element", "atom_type", "aatype"], dim=dim),
            component("embed", reads=["edge_rbf"], dim=16, writes={"h": "edge_attr"}),
            *_layers(dim=dim, depth=depth, scale=cutoff),
        ],
        readout={"h": "h", "pos": "moved"},
        doc=f"{PAPER}, between all heavy atoms; residues are read on their CA.",
        node_type="atom",
    )


FAMILY = Family(
    {
        "small": _network("egnn"),
        "satorras2021": _network("egnn.satorras2021", dim=128, depth=7, scale=1.0, attention=True),
        "atom": _atoms("egnn.atom"),
    },
    doc="E(n)-equivariant graph neural networks.",
)
