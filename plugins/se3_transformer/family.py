"""Model family of SE(3)-Transformers: attention with equivariant keys and values."""

from __future__ import annotations

from protgraph import ComponentSpec, Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"se3_transformer": "FAMILY"}}

FEATURES = [
    "dihedral",
    "orientation",
    "sidechain_direction",
    component("knn", k=16),
    "edge_vector",
    "edge_distance",
    component("edge_rbf", bins=16),
    "edge_offset",
]
EMBED_RESIDUES = component("embed", reads=["aatype", "dihedral", "dihedral_mask"], dim=64)


def _small(name: str, *, irreps: str, depth: int, heads: int) -> ModelSpec:
    attend = component(
        "se3_transformer", irreps=irreps, heads=heads, reads={"edge_attr": "edge_attr"}, writes={"h": "message"}
    )
    return ModelSpec(
        name,
        features=FEATURES,
        layers=[
            EMBED_RESIDUES,
            component("embed", reads=["edge_rbf", "edge_offset"], dim=16, writes={"h": "edge_attr"}),
            component("irreps_linear", irreps=irreps, reads=["h", "orientation", "sidechain_direction"]),
            *depth * [attend, component("add", reads=["h", "message"]), "irreps_norm"],
        ],
        doc="Fuchs et al. 2020, arXiv:2006.10503: equivariant keys and values, invariant attention.",
    )


def _published(
    name: str, *, hidden: str, value: str, heads: int, depth: int, lmax: int, out: str, entry: str
) -> ModelSpec:
    """Return ``depth`` attention layers with norm nonlinearity and a convolution; kernels per pair of channels."""
    kernel = {"radial": 32, "nets": "pair", "lmax": lmax, "parity": False, "reads": {"edge_attr": "edge_attr"}}

    def attend(irreps: str) -> ComponentSpec:
        return component("se3_transformer", irreps=irreps, value=value, heads=heads, mode="full", gate=False, **kernel)

    return ModelSpec(
        name,
        features=FEATURES,
        layers=[
            EMBED_RESIDUES,
            component("concat", reads=["edge_offset", "edge_dist"], writes={"h": "edge_attr"}),
            component("irreps_linear", irreps=entry, reads=["h", "orientation", "sidechain_direction"]),
            *depth * [attend(hidden), "norm_relu"],
            component("se3_conv", irreps=out, **kernel),
        ],
        doc="Fuchs et al. 2020, arXiv:2006.10503, with the depth and widths of its authors' QM9 command.",
    )


FAMILY = Family(
    {
        "small": _small("se3_transformer", irreps="64x0e+16x1o", depth=2, heads=4),
        "fuchs2020": _published(
            "se3_transformer.fuchs2020",
            entry="32x0e+32x1o",
            hidden="32x0e+32x1o+32x2e+32x3o",
            value="16x0e+16x1o+16x2e+16x3o",
            heads=8,
            depth=7,
            lmax=6,
            out="128x0e",
        ),
    },
    doc="SE(3)-Transformers.",
)
