"""Model family of GIGN: covalent bonds and contacts of a protein with its ligand, each with its own messages."""

from __future__ import annotations

from protgraph import Family, ModelSpec, component

__all__ = ["FAMILY"]
ENTRY_POINTS = {"protgraph.models": {"gign": "FAMILY"}}

PAPER = "Yang et al. 2023, doi:10.1021/acs.jpclett.2c03906"
GAUSSIANS = {"bins": 9, "cutoff": 6.0}


def _network(name: str, *, dim: int, norm: str, depth: int = 3, cutoff: float = 5.0, dropout: float = 0.1) -> ModelSpec:
    # The two edge types: covalent bonds are the edges of the graph, contacts an edge set of their own.
    features = [
        "covalent_bond",
        "edge_distance",
        component("edge_rbf", **GAUSSIANS),
        component("ligand_contact", cutoff=cutoff, edges="contact"),
        component("edge_distance", edges="contact"),
        component("edge_rbf", **GAUSSIANS, edges="contact"),
    ]
    options = {"dim": dim, "dropout": dropout, "norm": norm}
    bonded = component("gign", **options, reads={"edge_attr": "edge_rbf"}, writes={"h": "bonded"})
    in_contact = component(
        "gign", **options, edges="contact", reads={"edge_attr": "contact_edge_rbf"}, writes={"h": "in_contact"}
    )
    block = [bonded, in_contact, component("add", reads=["bonded", "in_contact"], writes={"h": "h"})]
    head = {"pool": "sum", "hidden": [dim, dim], "dropout": dropout}
    return ModelSpec(
        name,
        features=features,
        layers=[component("embed", reads=["element", "atom_type", "aatype"], dim=dim), *depth * block],
        heads={f"graph_{kind}": head for kind in ("classifier", "multilabel", "regressor")},
        doc=f"{PAPER}: affinities from messages along bonds and between a protein and its ligand.",
        node_type="atom",
    )


FAMILY = Family(
    {"small": _network("gign", dim=96, norm="layer"), "yang2023": _network("gign.yang2023", dim=256, norm="batch")},
    doc="Message passing along covalent bonds and between a protein and its ligand.",
)
