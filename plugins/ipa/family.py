"""Model family of invariant point attention with backbone updates of residue frames."""

from __future__ import annotations

from protgraph import Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"ipa": "FAMILY"}}

FEATURES = [
    "residue_frame",
    "dihedral",
    component("knn", k=16),
    "edge_distance",
    component("edge_rbf", bins=16),
    "edge_offset",
    "edge_frame",
]
PAIRS = ["edge_rbf", "edge_offset", "edge_local", "edge_rotation"]


def _network(
    name: str, *, dim: int = 64, pair: int = 16, heads: int = 4, depth: int = 3, atoms: bool = False
) -> ModelSpec:
    layers = [
        component("embed", reads=["aatype", "dihedral", "dihedral_mask"], dim=dim),
        component("embed", reads=PAIRS, dim=pair, writes={"h": "edge_attr"}),
    ]
    frame, pos = "frame", "pos"
    motions = [f"motion{k + 1}" for k in range(depth)]
    for motion in motions:
        where = {"frame": frame, "pos": pos}
        moved = {"frame": "moved_frame", "pos": "moved", "motion": motion}
        paired = {"edges": "edges", "edge_attr": "edge_attr"}
        layers += [
            component("ipa", dim=dim, heads=heads, reads=where | paired, writes={"h": "attended"}),
            component("residual", act="none", dropout=0.1, reads={"update": "attended"}),
            component("mlp", depth=3, hidden=dim, act="relu", writes={"h": "forward"}),
            component("residual", act="none", dropout=0.1, reads={"update": "forward"}),
            component("backbone_update", reads=where, writes=moved),
        ]
        frame, pos = "moved_frame", "moved"
    if atoms:
        last = {"frame": frame, "pos": pos}
        layers.append(component("place_backbone", reads=last, writes={"backbone": "moved_backbone"}))
    # The displacement of CA is a vector: scalar heads read its length, vector heads the vector.
    layers += [component("add", reads=motions, writes={"h": "motion"}), component("concat", reads=["h", "motion"])]
    return ModelSpec(
        name,
        features=FEATURES,
        layers=layers,
        readout={"h": "h", "pos": "moved_backbone" if atoms else pos},
        doc="Invariant point attention and backbone updates; Jumper et al. 2021, doi:10.1038/s41586-021-03819-2.",
    )


FAMILY = Family(
    {
        "small": _network("ipa"),
        "backbone": _network("ipa.backbone", atoms=True),
        "jumper2021": _network("ipa.jumper2021", dim=384, pair=128, heads=12, depth=8),
    },
    doc="Invariant point attention.",
)
