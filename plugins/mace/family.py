"""Model family of MACE: pairwise messages, then symmetric products of them (many-body messages)."""

from __future__ import annotations

from protgraph import Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"mace": "FAMILY"}}

NEIGHBORS = 16

FEATURES = [
    "dihedral",
    "orientation",
    "sidechain_direction",
    component("knn", k=NEIGHBORS),
    "edge_vector",
    "edge_distance",
    component("edge_rbf", bins=16),
    "edge_offset",
]


def _network(
    name: str,
    *,
    irreps: str,
    atomic: str,
    lmax: int,
    radial: int,
    depth: int,
    correlation: int = 3,
    entry: str | None = None,
) -> ModelSpec:
    """Return ``depth`` times ``A = Σ_j R Y ⊗ h_j`` (irreps ``atomic``), ``h ← h + Linear(B(A))``.

    If h starts with other irreps (``entry``), the first message replaces it.
    """
    gather = {"irreps": atomic, "lmax": lmax, "radial": radial, "gate": False}
    message = [
        component("tfn", **gather, reads={"edge_attr": "edge_attr"}, writes={"h": "atomic"}),
        component(
            "product_basis", irreps=irreps, correlation=correlation, reads={"h": "atomic"}, writes={"h": "message"}
        ),
    ]
    block = [*message, component("add", reads=["h", "message"]), "irreps_norm"]
    first = block if entry is None else [*message, component("irreps_norm", reads={"h": "message"})]
    return ModelSpec(
        name,
        features=FEATURES,
        layers=[
            component("embed", reads=["aatype", "dihedral", "dihedral_mask"], dim=64),
            component("embed", reads=["edge_rbf", "edge_offset"], dim=16, writes={"h": "edge_attr"}),
            component("irreps_linear", irreps=entry or irreps, reads=["h", "orientation", "sidechain_direction"]),
            *first,
            *(depth - 1) * block,
        ],
        doc="Batatia et al. 2022, arXiv:2206.07697: many-body messages by symmetric products.",
    )


FAMILY = Family(
    {
        "small": _network("mace", irreps="48x0e+48x1o", atomic="48x0e+48x1o", lmax=1, radial=16, depth=2),
        "batatia2022": _network(
            "mace.batatia2022",
            irreps="256x0e+256x1o+256x2e",
            atomic="256x0e+256x1o+256x2e+256x3o",
            entry="256x0e+256x1o",
            lmax=3,
            radial=64,
            depth=2,
        ),
    },
    doc="Equivariant message passing with many-body messages.",
)
