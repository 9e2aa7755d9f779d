"""Model family with two branches: attention over the whole chain, and tensor field convolutions on neighbors."""

from __future__ import annotations

from protgraph import Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"hybrid": "FAMILY"}}

FEATURES = [
    "sequence_position",
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


def _attention(h: str, *, dim: int, heads: int, dropout: float) -> list:
    """Return a pre-norm transformer block that reads and writes the field h."""
    skip = {"act": "none", "norm": "none", "dropout": dropout}
    return [
        component("layer_norm", reads={"h": h}, writes={"h": "normed"}),
        component("transformer", dim=dim, heads=heads, root=False, reads={"h": "normed"}, writes={"h": "attended"}),
        component("linear", dim=dim, reads={"h": "attended"}, writes={"h": "attended"}),
        component("residual", **skip, reads={"h": h, "update": "attended"}, writes={"h": h}),
        component("layer_norm", reads={"h": h}, writes={"h": "normed"}),
        component("mlp", hidden=2 * dim, reads={"h": "normed"}, writes={"h": "forward"}),
        component("residual", **skip, reads={"h": h, "update": "forward"}, writes={"h": h}),
    ]


def _filters(h: str, *, irreps: str) -> list:
    """Return a tensor field network block that reads and writes the field h."""
    return [
        component("tfn", irreps=irreps, reads={"h": h, "edge_attr": "edge_attr"}, writes={"h": "message"}),
        component("add", reads=[h, "message"], writes={"h": h}),
        component("irreps_norm", reads={"h": h}, writes={"h": h}),
    ]


def _network(
    name: str, *, dim: int = 64, irreps: str = "64x0e+16x1o", heads: int = 4, depth: int = 2, dropout: float = 0.1
) -> ModelSpec:
    residue = ["aatype", "dihedral", "dihedral_mask", "ca_density", "sequence_position"]
    vectors = ["orientation", "sidechain_direction"]
    return ModelSpec(
        name,
        features=FEATURES,
        layers=[
            component("embed", reads=residue, dim=dim),
            component("embed", reads=["edge_rbf", "edge_offset"], dim=16, writes={"h": "edge_attr"}),
            # one branch: the whole chain
            component("linear", dim=dim, writes={"h": "chain"}),
            *depth * _attention("chain", dim=dim, heads=heads, dropout=dropout),
            # the other: the neighbors in space
            component("irreps_linear", irreps=irreps, reads=["h", *vectors], writes={"h": "space"}),
            *depth * _filters("space", irreps=irreps),
            component("layer_norm", reads={"h": "chain"}, writes={"h": "chain"}),
            component("concat", reads=["chain", "space"]),
        ],
        doc="Transformer and tensor field network in parallel; the head reads both.",
    )


FAMILY = Family(
    {"small": _network("hybrid"), "base": _network("hybrid.base", dim=128, irreps="128x0e+32x1o", heads=8, depth=4)},
    doc="Transformer and equivariant branches.",
)
