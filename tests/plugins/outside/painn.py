"""PaiNN-like layer (Schütt et al. 2021): scalars h and vectors v exchange messages along edges."""

from __future__ import annotations

import torch
from torch import nn

import protgraph as pg


@pg.layers.register("outside_painn")
class PaiNN(pg.GraphLayer):
    """``h_i += Σ_j φ_s``, ``v_i += Σ_j φ_vv v_j + φ_vs r_ij``, then an update by norms and dot products of v."""

    reads, writes = ("h", "v", "edges", "edge_rbf", "edge_direction"), ("h", "v")
    conformity = pg.Conformity(inputs={"h": "16x0e", "v": "16x1o"})

    def __init__(self, fields):
        super().__init__(fields)
        dim = self.scalar_width("h")
        self.phi = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, 3 * dim))
        self.filter = nn.Linear(self.scalar_width("edge_rbf"), 3 * dim)
        self.mix = nn.Linear(dim, 2 * dim, bias=False)
        self.update = nn.Sequential(nn.Linear(2 * dim, dim), nn.SiLU(), nn.Linear(dim, 3 * dim))
        self.declare(h=f"{dim}x0e", v=f"{dim}x1o")

    def forward(self, f):
        edges, h, v = f["edges"], f["h"], f["v"].unflatten(1, (-1, 3))  # v (N, C, 3)
        scalar, gate, radial = (edges.source(self.phi(h)) * self.filter(f["edge_rbf"])).chunk(3, -1)  # (E, C) each
        message = gate.unsqueeze(2) * edges.source(v) + radial.unsqueeze(2) * f["edge_direction"].unsqueeze(1)
        h, v = h + edges.mean(scalar), v + edges.mean(message)
        left, right = self.mix(v.transpose(1, 2)).transpose(1, 2).chunk(2, 1)  # (N, C, 3) each
        norm = (right.square().sum(2) + 1e-6).sqrt()
        a, b, c = self.update(torch.cat([h, norm], 1)).chunk(3, 1)
        return {"h": h + a + b * (left * right).sum(2), "v": (v + c.unsqueeze(2) * left).flatten(1)}


@pg.layers.register("outside_vectors")
class Vectors(pg.GraphLayer):
    """First vectors: sums of the directions to the neighbors, weighted by h."""

    reads, writes = ("h", "edges", "edge_direction"), ("v",)

    def __init__(self, fields):
        super().__init__(fields)
        self.declare(v=f"{self.scalar_width('h')}x1o")

    def forward(self, f):
        message = f["edges"].source(f["h"]).unsqueeze(2) * f["edge_direction"].unsqueeze(1)  # (E, C, 3)
        return {"v": f["edges"].mean(message).flatten(1)}


FEATURES = [pg.component("knn", k=8), "edge_direction", "edge_distance", pg.component("edge_rbf", bins=8)]
LAYERS = [pg.component("embed", reads=["aatype"], dim=16), "outside_vectors", pg.component("outside_painn", repeat=2)]
MODEL = pg.ModelSpec("outside_painn", features=FEATURES, layers=LAYERS)
CHECKED = [PaiNN, Vectors, MODEL]
