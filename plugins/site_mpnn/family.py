"""Model family for binding sites: descriptors of the surface, and messages with the geometry of side chains."""

from __future__ import annotations

from protgraph import Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"site_mpnn": "FAMILY"}}

SURFACE = ["electrostatics", "shell_composition", "surface_shape", "protein_composition"]
RESIDUE = ["sasa", "protrusion", "terminus_distance", "dssp", "dihedral"]
EDGES = ["residue_frame", "edge_distance", "edge_rbf", "edge_offset", "edge_frame", "sidechain_point", "edge_sidechain"]
EDGE_FIELDS = ["edge_rbf", "edge_offset", "edge_local", "edge_rotation", "edge_sidechain"]


def _block(dim: int, dropout: float) -> list:
    """Return a message passing layer and a feed-forward network, each with layer normalization before it."""
    skip = {"act": "none", "norm": "none", "dropout": dropout}
    return [
        component("layer_norm", writes={"h": "normed"}),
        component(
            "mpnn",
            dim=dim,
            act="gelu",
            aggregate="mean",
            reads={"h": "normed", "edge_attr": "edge_attr"},
            writes={"h": "update"},
        ),
        component("residual", **skip),
        component("layer_norm", writes={"h": "normed"}),
        component("mlp", hidden=2 * dim, dropout=dropout, reads={"h": "normed"}, writes={"h": "update"}),
        component("residual", **skip),
    ]


def _network(
    name: str,
    *,
    dim: int = 64,
    edge_dim: int = 32,
    depth: int = 3,
    k: int = 24,
    dropout: float = 0.2,
    backbone: bool = False,
    antibody: bool = False,
    pocket: bool = False,
) -> ModelSpec:
    """Return the network.

    ``backbone`` adds the embedding of ProteinMPNN, ``antibody`` numbered domains, ``pocket`` cavities.
    """
    embedding = ["proteinmpnn_embedding"] if backbone else []
    cavity = ["cavity"] if pocket else []
    domain = ["variable_domain"] if antibody else []
    numbering = [component("variable_domain", required=True)] if antibody else []
    fields = ["aatype", "dssp", "dihedral", "dihedral_mask", "sasa", "relative_sasa", "protrusion", "terminus_distance"]
    return ModelSpec(
        name,
        features=[*RESIDUE, *SURFACE, *cavity, *embedding, *numbering, component("knn", k=k), *EDGES],
        layers=[
            component("embed", reads=[*fields, *domain, *SURFACE, *cavity, *embedding], dim=dim, dropout=dropout),
            component("mlp", hidden=dim, dropout=dropout),
            component("embed", reads=EDGE_FIELDS, dim=edge_dim, writes={"h": "edge_attr"}),
            component("mlp", hidden=edge_dim, reads={"h": "edge_attr"}, writes={"h": "edge_attr"}),
            *depth * _block(dim, dropout),
            component("layer_norm"),
        ],
        doc="Charges, composition and shape around each residue; messages with the geometry of side chains.",
    )


FAMILY = Family(
    {
        "small": _network("site_mpnn"),
        "backbone": _network("site_mpnn.backbone", backbone=True),
        "antibody": _network("site_mpnn.antibody", backbone=True, antibody=True),
        "pocket": _network("site_mpnn.pocket", backbone=True, pocket=True),
        "wide": _network("site_mpnn.wide", dim=96, depth=4, backbone=True),
    },
    doc="Message passing networks for binding sites.",
)
