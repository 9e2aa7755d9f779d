"""One layer that is called three times, with one set of weights."""

from __future__ import annotations

from torch import nn

import protgraph as pg


@pg.layers.register("outside_step")
class Step(pg.GraphLayer):
    """Gated recurrent update by the mean of the neighbors (Li et al. 2016)."""

    reads, writes = ("h", "edges"), ("h",)

    def __init__(self, fields):
        super().__init__(fields)
        width = self.scalar_width("h")
        self.cell = nn.GRUCell(width, width)
        self.declare(h=f"{width}x0e")

    def forward(self, f):
        return {"h": self.cell(f["edges"].mean(f["edges"].source(f["h"])), f["h"])}


LAYERS = [pg.component("embed", reads=["aatype"], dim=16), pg.component("outside_step", repeat=3, shared="step")]
MODEL = pg.ModelSpec("outside_recurrent", features=["knn"], layers=LAYERS)
CHECKED = [Step, MODEL]
