"""DimeNet++-like model (Gasteiger et al. 2020): messages between adjacent edges, on one line graph for all layers."""

from __future__ import annotations

from torch import nn

import protgraph as pg


@pg.layers.register("outside_interaction")
class Interaction(pg.GraphLayer):
    """``m_ji += MLP(Σ_k W₁ a_kji ⊙ W₂ m_kj)``: the nodes are edges, and edge_attr is of pairs of edges."""

    reads, writes = ("h", "edges", "edge_attr"), ("h",)

    def __init__(self, fields, *, dim: int = 8):
        super().__init__(fields)
        width = self.scalar_width("h")
        self.down, self.angle = nn.Linear(width, dim), nn.Linear(self.scalar_width("edge_attr"), dim)
        self.up = nn.Sequential(nn.Linear(dim, width), nn.SiLU(), nn.Linear(width, width))
        self.declare(h=f"{width}x0e")

    def forward(self, f):
        message = self.angle(f["edge_attr"]) * f["edges"].source(self.down(f["h"]))  # (T, dim)
        return {"h": f["h"] + self.up(f["edges"].sum(message))}


@pg.layers.register("outside_output")
class Output(pg.GraphLayer):
    """``h_i = MLP(Σ_j m_ji)``: sum of the messages of the edges into each node."""

    reads, writes = ("edge_h", "edges"), ("h",)
    conformity = pg.Conformity(expected_failures={"non_trivial": "only the targets of the edges are read"})

    def __init__(self, fields, *, dim: int = 16):
        super().__init__(fields)
        self.mlp = nn.Sequential(nn.Linear(self.scalar_width("edge_h"), dim), nn.SiLU(), nn.Linear(dim, dim))
        self.declare(h=f"{dim}x0e")

    def forward(self, f):
        return {"h": self.mlp(f["edges"].mean(f["edge_h"]))}


FEATURES = [
    pg.component("knn", k=6),
    *("edge_vector", "edge_distance", "edge_rbf", "edge_residue", "line_graph"),
    pg.component("edge_cosine", edges="line", reads={"node_vec": "edge_vec"}),  # writes line_edge_cosine
]
INTERACTION = pg.component(
    "outside_interaction", edges="line", reads={"h": "edge_h", "edge_attr": "angle"}, writes={"h": "edge_h"}, repeat=2
)
LAYERS = [
    pg.component("embed", reads=["edge_rbf", "edge_residue"], dim=16, writes={"h": "edge_h"}),
    pg.component("embed", reads=["line_edge_cosine"], dim=8, writes={"h": "angle"}),
    INTERACTION,
    "outside_output",
]
MODEL = pg.ModelSpec("outside_dimenet", features=FEATURES, layers=LAYERS)
CHECKED = [Interaction, Output, MODEL]
