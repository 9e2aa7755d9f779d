"""Residues and atoms in one model: messages between atoms, pooled to their residues, messages there, and back."""

from __future__ import annotations

import protgraph as pg

FEATURES = [
    pg.component("radius", radius=4.5),
    "edge_distance",
    "residues",  # the node set, and the edges to_residues and from_residues
    pg.component("knn", k=6, nodes="residues", edges="near"),
    pg.component("edge_distance", edges="near"),  # near_edge_dist
    pg.component("dihedral", nodes="residues"),  # residues_dihedral
]
LAYERS = [
    pg.component("embed", reads=["element", "aatype"], dim=16),
    pg.component("mpnn", dim=16, reads={"edge_attr": "edge_dist"}),
    pg.component("pool", edges="to_residues"),  # h to residues_h
    pg.component("embed", reads=["residues_aatype", "residues_dihedral"], dim=16, writes={"h": "residues_x"}),
    pg.component("add", reads=["residues_h", "residues_x"], nodes="residues"),
    pg.component("mpnn", dim=16, edges="near", reads={"edge_attr": "near_edge_dist"}),
    pg.component("pool", edges="from_residues", writes={"h": "of_residue"}),
    pg.component("concat", reads=["h", "of_residue"]),
]
MODEL = pg.ModelSpec("outside_two_levels", features=FEATURES, layers=LAYERS, node_type="atom")
CHECKED = [MODEL]
