"""Points around each residue as a node set, without those inside the protein, and messages from them to residues."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

import protgraph as pg
from protgraph.data import register_field
from protgraph.featurize import axes

register_field(pg.FieldSpec("outside_points", "node", "object", doc="node set: points near the surface"))


@pg.featurizers.register("outside_points")
class Points(pg.NodeFeaturizer):
    """Points 4.5 Å from each CA along the axes of its frame, in both directions; none nearer to another CA."""

    writes = ("outside_points",)

    def __call__(self, residues):
        n, ca, c = np.nan_to_num(residues.backbone)[:, :3].swapaxes(0, 1)  # (L, 3) each
        frame = axes(torch.tensor(n - ca), torch.tensor(c - ca)).numpy()  # (L, 3, 3), rows are axes
        pos = residues.pos[:, None] + 4.5 * np.concatenate([frame, -frame], 1)  # (L, 6, 3)
        pos, owner = pos.reshape(-1, 3), np.arange(len(residues)).repeat(6)
        distance = np.linalg.norm(pos[:, None] - residues.pos, axis=2)  # (6 L, L)
        distance[np.arange(len(pos)), owner] = np.inf
        return pg.NodeList(pos[distance.min(1) > 4.5], owner[distance.min(1) > 4.5])


@pg.layers.register("outside_bipartite")
class Bipartite(pg.GraphLayer):
    """``h_i = h_i + Σ_j W [h_j, d_ij]`` from points j to residues i."""

    reads, writes = ("h", "source_h", "edge_dist", "edges"), ("h",)

    def __init__(self, fields):
        super().__init__(fields)
        width, source_width = self.scalar_width("h"), self.scalar_width("source_h")
        self.message, self.distance = nn.Linear(source_width, width), nn.Linear(1, width)
        self.declare(h=f"{width}x0e")

    def forward(self, f):
        message = f["edges"].source(self.message(f["source_h"])) * self.distance(f["edge_dist"] / 10)
        return {"h": f["h"] + f["edges"].mean(message.tanh())}


FEATURES = [
    *("outside_points", pg.component("dihedral", nodes="outside_points")),
    pg.component("radius", radius=7.0, sources="outside_points", edges="touch"),
    pg.component("edge_distance", edges="touch"),
]
LAYERS = [
    pg.component("embed", reads=["aatype"], dim=16),
    pg.component("embed", reads=["outside_points_dihedral"], dim=8, nodes="outside_points"),
    pg.component("outside_bipartite", edges="touch"),
]
MODEL = pg.ModelSpec("outside_surface", features=FEATURES, layers=LAYERS)
CHECKED = [Points, Bipartite, MODEL]
