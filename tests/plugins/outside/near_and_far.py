"""Nearest neighbors and a radius graph in one model, each read by other layers."""

from __future__ import annotations

import protgraph as pg

FEATURES = [
    pg.component("knn", k=6),
    pg.component("radius", radius=14.0, edges="far"),
    pg.component("edge_distance", edges="far"),
    pg.component("edge_rbf", bins=8, edges="far"),
]
LAYERS = [
    pg.component("embed", reads=["aatype"], dim=16),
    pg.component("gcn", dim=16),
    pg.component("mpnn", dim=16, edges="far", reads={"edge_attr": "far_edge_rbf"}),
]
MODEL = pg.ModelSpec("outside_near_and_far", features=FEATURES, layers=LAYERS)
CHECKED = [MODEL]
