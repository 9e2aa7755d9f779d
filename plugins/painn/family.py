"""Model family of PaiNN: scalars and vectors of residues exchange messages."""

from __future__ import annotations

from protgraph import ComponentSpec, Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"painn": "FAMILY"}}

PAPER = "Schütt, Unke & Gastegger 2021, arXiv:2102.03150"


def _network(
    name: str, *, dim: int = 64, depth: int = 3, k: int = 16, cutoff: float = 20.0, offsets: bool = True
) -> ModelSpec:
    edges = [component("embed", reads=["edge_offset"], dim=16, writes={"h": "edge_attr"})] if offsets else []
    reads = {"v": "v", "edge_attr": "edge_attr"} if offsets else {"v": "v"}
    return ModelSpec(
        name,
        features=[
            *("dihedral", "orientation", "sidechain_direction", component("knn", k=k), "edge_vector"),
            *(["edge_offset"] if offsets else []),
        ],
        layers=[
            component("embed", reads=["aatype", "dihedral", "dihedral_mask"], dim=dim),
            component(
                "irreps_linear", reads=["orientation", "sidechain_direction"], irreps=f"{dim}x1o", writes={"h": "v"}
            ),
            *edges,
            component("painn", cutoff=cutoff, reads=reads, repeat=depth),
            component("concat", reads=["h", "v"]),
        ],
        doc=f"{PAPER}: equivariant messages with scalars and vectors.",
    )


def _atoms(name: str, *, dim: int = 64, depth: int = 3, cutoff: float = 5.0) -> ModelSpec:
    # Vectors start as 0, as in the paper.
    rounds: list[ComponentSpec] = [component("painn", cutoff=cutoff)]
    rounds.append(component("painn", cutoff=cutoff, reads={"v": "v"}, repeat=depth - 1))
    return ModelSpec(
        name,
        features=[component("radius", radius=cutoff), "edge_vector"],
        layers=[
            component("embed", reads=["element", "atom_type", "aatype"], dim=dim),
            *rounds,
            component("concat", reads=["h", "v"]),
        ],
        doc=f"{PAPER}, between all heavy atoms; residues are read on their CA.",
        node_type="atom",
    )


FAMILY = Family(
    {
        "small": _network("painn"),
        "schutt2021": _network("painn.schutt2021", dim=128, k=30, offsets=False),
        "atom": _atoms("painn.atom"),
    },
    doc="Polarizable atom interaction networks (PaiNN).",
)
