"""Model family ``structure_encoder``: messages between residues, from their types and atom distances."""

from __future__ import annotations

from protgraph import Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"structure_encoder": "FAMILY"}}


def _network(name: str, *, dim: int, depth: int, k: int, dropout: float) -> ModelSpec:
    reads = {"h": "h", "edge_attr": "edge_attr"}
    encoder = component("proteinmpnn_encoder", dropout=dropout, reads=reads)
    last = component("proteinmpnn_encoder", dropout=dropout, updates_edges=False, reads=reads)
    return ModelSpec(
        name,
        features=[
            component("backbone_knn", k=k),
            "virtual_cb",
            "atom_pair_rbf",
            "relative_position",
        ],
        layers=[
            component("embed", reads=["aatype"], dim=dim),
            component("embed", reads=["relative_position"], dim=16, writes={"h": "edge_position"}),
            component("embed", reads=["edge_position", "atom_pair_rbf"], dim=dim, writes={"h": "edge_attr"}),
            component("layer_norm", reads={"h": "edge_attr"}, writes={"h": "edge_attr"}),
            *(depth - 1) * [encoder],
            last,
        ],
        doc="Messages between the nearest residues from residue types and distances of backbone atoms. Side chains are "
        "not read: they may be missing.",
    )


FAMILY = Family(
    {
        "small": _network("structure_encoder", dim=64, depth=2, k=16, dropout=0.1),
        "base": _network("structure_encoder.base", dim=192, depth=4, k=16, dropout=0.0),
    },
    doc="Vectors of residues from residue types and backbones, for pretraining on unlabeled structures.",
)
