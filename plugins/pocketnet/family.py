"""Model family of PocketNet: messages between atoms, attention of surface points to atoms, best point of a residue."""

from __future__ import annotations

from protgraph import ComponentSpec, Family, ModelSpec, component

__all__ = ["FAMILY", "MESSAGES", "NETWORKS"]
ENTRY_POINTS = {"protgraph.models": {"pocketnet": "FAMILY"}}

SOURCE = "PyPI distribution pocketnet 0.3.0 (Arulsamy & Natarajan 2026)"
#: Number of networks whose probabilities are averaged, and of layers of messages in each.
NETWORKS, MESSAGES = 5, 6

ATOM_NEIGHBORS, POINT_NEIGHBORS = 24, 32  # nearest atoms of an atom and of a point
NEAR_RESIDUE = 4.5  # Å, points that count for a residue
ATOMS, POINTS = "pocketnet_atoms", "pocketnet_points"


def _features() -> list[ComponentSpec | str]:
    return [
        ATOMS,
        POINTS,
        component("knn", k=ATOM_NEIGHBORS, nodes=ATOMS, edges="atom_near"),
        component("edge_distance", edges="atom_near"),
        component("knn", k=POINT_NEIGHBORS, nodes=POINTS, sources=ATOMS, edges="point_near"),
        component("radius", radius=NEAR_RESIDUE, nodes=ATOMS, sources=POINTS, edges="around"),
    ]


def _network(*, dim: int, messages: int, point_dim: int, logit: str) -> list[ComponentSpec]:
    """Return the layers of one network, which writes a logit of each point."""
    return [
        component("pocketnet_embed", dim=dim, edges="atom_near", nodes=ATOMS),
        *messages * [component("pocketnet_message", edges="atom_near", nodes=ATOMS)],
        component("pocketnet_attention", dim=point_dim, edges="point_near", writes={"h": logit}),
    ]


def _model(name: str, *, networks: int, dim: int, messages: int, point_dim: int, weights: str, doc: str) -> ModelSpec:
    """Return networks one after the other, their mean, and the largest probability around each residue."""
    layers: list[ComponentSpec] = []
    logits = [f"{POINTS}_logit_{number}" for number in range(networks)]
    for logit in logits:
        layers += _network(dim=dim, messages=messages, point_dim=point_dim, logit=logit)
    layers += [
        component("mean_probability", reads=logits, nodes=POINTS, writes={"h": f"{POINTS}_probability"}),
        component("pool", reduce="max", edges="around", reads={"source_h": f"{POINTS}_probability"}),
        component("pool", reduce="max", edges=f"from_{ATOMS}"),
        component("pocketnet_log_odds"),
    ]
    return ModelSpec(name, features=_features(), layers=layers, weights=weights, doc=doc)


FAMILY = Family(
    {
        "published": _model(
            "pocketnet",
            networks=NETWORKS,
            dim=128,
            messages=MESSAGES,
            point_dim=64,
            weights="protgraph_plugins.pocketnet.weights:load_pocketnet",
            doc=f"{SOURCE}: residues that bind a small molecule; mean of five networks, published weights.",
        ),
        "small": _model(
            "pocketnet.small",
            networks=1,
            dim=32,
            messages=2,
            point_dim=16,
            weights="",
            doc=f"{SOURCE}: one network of a quarter of the width.",
        ),
    },
    doc="Points on the accessible surface that attend to atoms; a residue has the best point around it.",
)
