"""Model family of Equiformer: attention with equivariant messages of tensor products."""

from __future__ import annotations

from protgraph import ComponentSpec, Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"equiformer": "FAMILY"}}


def _network(name: str, *, irreps: str, depth: int, lmax: int, heads: int, k: int = 16, radial: int = 16) -> ModelSpec:
    attention = component(
        "equiformer",
        heads=heads,
        lmax=lmax,
        radial=radial,
        reads={"h": "normed", "edge_attr": "edge_attr"},
        writes={"h": "update"},
    )
    normalize = component("irreps_norm", writes={"h": "normed"})
    add = component("add", reads=["h", "update"])
    feed_forward = component("equiformer_feed_forward", reads={"h": "normed"}, writes={"h": "update"})
    block: list[ComponentSpec] = [normalize, attention, add, normalize, feed_forward, add]
    return ModelSpec(
        name,
        features=[
            *("dihedral", "orientation", "sidechain_direction", component("knn", k=k), "edge_vector"),
            *("edge_distance", component("edge_rbf", bins=16), "edge_offset"),
        ],
        layers=[
            component("embed", reads=["aatype", "dihedral", "dihedral_mask"], dim=64),
            component("embed", reads=["edge_rbf", "edge_offset"], dim=16, writes={"h": "edge_attr"}),
            component("irreps_linear", irreps=_first(irreps), reads=["h", "orientation", "sidechain_direction"]),
            *([component("tfn", irreps=irreps, lmax=lmax, reads={"edge_attr": "edge_attr"})] if lmax > 1 else []),
            *depth * block,
            "irreps_norm",
        ],
        doc="Liao & Smidt 2023, arXiv:2206.11990: equivariant graph attention with nonlinear messages.",
    )


def _first(irreps: str) -> str:
    """Return the scalars and vectors of irreps, which input features have."""
    return "+".join(term for term in irreps.split("+") if term.endswith(("0e", "1o")))


FAMILY = Family(
    {
        "small": _network("equiformer", irreps="64x0e+16x1o", depth=2, lmax=1, heads=4),
        "liao2023": _network("equiformer.liao2023", irreps="128x0e+64x1o+32x2e", depth=6, lmax=2, heads=4, radial=64),
    },
    doc="Equivariant graph attention transformers (Equiformer).",
)
