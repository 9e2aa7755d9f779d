"""Model family on surface points beside residues: residues → points → their neighbors on the surface → residues."""

from __future__ import annotations

from protgraph import ComponentSpec, Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"surface": "FAMILY"}}

REACH = 7.0  # Å, between neighboring points
RESIDUE = ["sasa", "protrusion", "terminus_distance", "dssp", "dihedral"]
SURFACE = ["electrostatics", "shell_composition", "surface_shape", "protein_composition", "cavity"]
EDGES = ["residue_frame", "edge_distance", "edge_rbf", "edge_offset", "edge_frame", "sidechain_point", "edge_sidechain"]
EDGE_FIELDS = ["edge_rbf", "edge_offset", "edge_local", "edge_rotation", "edge_sidechain"]
NODE_FIELDS = [
    *("aatype", "dssp", "dihedral", "dihedral_mask", "sasa", "relative_sasa", "protrusion", "terminus_distance"),
    *SURFACE,
]
POINTS = [
    "sas",
    component("radius", radius=REACH, nodes="sas", edges="patch"),
    component("edge_distance", edges="patch"),
    component("edge_point", edges="patch", high=REACH),
]
POINT_FIELDS = ["sas_point_weight", "sas_point_chemistry", "sas_point_shape"]


def _residue_block(dim: int, dropout: float) -> list[ComponentSpec]:
    """Return a message passing layer between residues and a feed-forward network, each after a normalization."""
    skip = {"act": "none", "norm": "none", "dropout": dropout}
    edges = {"h": "normed", "edge_attr": "edge_attr"}
    return [
        component("layer_norm", writes={"h": "normed"}),
        component("mpnn", dim=dim, act="gelu", aggregate="mean", reads=edges, writes={"h": "update"}),
        component("residual", **skip),
        component("layer_norm", writes={"h": "normed"}),
        component("mlp", hidden=2 * dim, dropout=dropout, reads={"h": "normed"}, writes={"h": "update"}),
        component("residual", **skip),
    ]


def _point_block(dim: int, dropout: float) -> list[ComponentSpec]:
    """Return messages between neighboring points: ``sas_h``."""
    normed = {"h": "sas_normed", "source_h": "sas_normed"}
    on_edges = {"edge_attr": "patch_edge_point", "edge_dist": "patch_edge_dist"}
    message = component(
        "surface_message",
        dim=dim,
        cutoff=REACH,
        edges="patch",
        reads={**normed, **on_edges},
        writes={"h": "sas_update"},
    )
    return [
        component("layer_norm", nodes="sas", writes={"h": "sas_normed"}),
        message,
        component("residual", act="none", norm="none", dropout=dropout, nodes="sas"),
    ]


def _points_to_residues(dim: int, dropout: float) -> list[ComponentSpec]:
    """Return messages from the points of each residue to it: ``h``."""
    normed = {"h": "normed", "source_h": "sas_normed"}
    return [
        component("layer_norm", nodes="sas", writes={"h": "sas_normed"}),
        component("layer_norm", writes={"h": "normed"}),
        component("surface_message", dim=dim, edges="from_sas", reads=normed, writes={"h": "update"}),
        component("residual", act="none", norm="none", dropout=dropout),
    ]


def _network(
    name: str,
    *,
    dim: int = 64,
    edge_dim: int = 32,
    point_dim: int = 32,
    k: int = 24,
    dropout: float = 0.2,
    backbone: bool = False,
) -> ModelSpec:
    """Return the network; ``backbone`` adds the embedding of ProteinMPNN."""
    embedding = ["proteinmpnn_embedding"] if backbone else []
    return ModelSpec(
        name,
        features=[*RESIDUE, *SURFACE, *embedding, component("knn", k=k), *EDGES, *POINTS],
        layers=[
            # residues and their neighbors
            component("embed", reads=[*NODE_FIELDS, *embedding], dim=dim, dropout=dropout),
            component("mlp", hidden=dim, dropout=dropout),
            component("embed", reads=EDGE_FIELDS, dim=edge_dim, writes={"h": "edge_attr"}),
            component("mlp", hidden=edge_dim, reads={"h": "edge_attr"}, writes={"h": "edge_attr"}),
            *_residue_block(dim, dropout),
            # points: what is around them, and the residue that they are on
            component("linear", dim=point_dim, writes={"h": "of_residue"}),
            component("pool", edges="to_sas", reads={"source_h": "of_residue"}, writes={"h": "sas_of_residue"}),
            component("embed", reads=POINT_FIELDS, dim=point_dim, nodes="sas", writes={"h": "sas_around"}),
            component("concat", reads=["sas_of_residue", "sas_around"], nodes="sas", writes={"h": "sas_h"}),
            component("mlp", dim=point_dim, hidden=2 * point_dim, dropout=dropout, nodes="sas"),
            *2 * _point_block(point_dim, dropout),
            # back to residues and their neighbors
            *_points_to_residues(dim, dropout),
            *2 * _residue_block(dim, dropout),
            component("layer_norm"),
        ],
        doc="Residues and points on the accessible surface, with messages within and between both.",
    )


FAMILY = Family(
    {"small": _network("surface"), "backbone": _network("surface.backbone", backbone=True)},
    doc="Message passing between residues and points on the solvent-accessible surface.",
)
