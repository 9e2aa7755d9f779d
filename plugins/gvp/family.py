"""Model family of geometric vector perceptrons: equivariant scalars and vectors on residues and edges."""

from __future__ import annotations

from protgraph import Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"gvp": "FAMILY"}}


def _network(
    name: str,
    *,
    irreps: str = "64x0e+16x1o",
    edge: str = "32x0e+1x1o",
    dim: int = 64,
    depth: int = 3,
    k: int = 16,
    gate: str = "scalar",
    dropout: float = 0.1,
    doc: str = "Jing et al. 2021, arXiv:2106.03843: vectors gated by scalars.",
) -> ModelSpec:
    return ModelSpec(
        name,
        features=[
            "dihedral",
            "orientation",
            "sidechain_direction",
            component("knn", k=k),
            "edge_distance",
            "edge_direction",
            component("edge_rbf", bins=16),
            "edge_offset",
        ],
        layers=[
            component("embed", reads=["aatype", "dihedral", "dihedral_mask"], dim=dim),
            component("gvp", reads=["h", "orientation", "sidechain_direction"], irreps=irreps, gate=gate),
            component(
                "gvp",
                reads=["edge_rbf", "edge_offset", "edge_direction"],
                irreps=edge,
                gate=gate,
                writes={"h": "edge_attr"},
            ),
            *depth * [component("gvp_conv", gate=gate, dropout=dropout)],
        ],
        doc=doc,
    )


FAMILY = Family(
    {
        "small": _network("gvp"),
        "jing2021": _network(
            "gvp.jing2021",
            irreps="100x0e+16x1o",
            dim=100,
            k=30,
            gate="norm",
            doc="Jing et al. 2021, arXiv:2009.01411: encoder of the protein design and quality assessment models.",
        ),
        "jing2021_gated": _network("gvp.jing2021_gated", irreps="100x0e+16x1o", dim=100, depth=5, k=30),
    },
    doc="Geometric vector perceptrons.",
)
