"""One head, one task and one loss for a number and a vector of each residue."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import nn

import protgraph as pg
from protgraph.task import default_task


@pg.heads.register("outside_energy_and_force")
class EnergyAndForce(pg.Head):
    """``[W h_0, Σ_u w_u v_u]`` of the scalars h_0 and the vectors v_u of h, in units of the labels."""

    reads, level = ("h",), "node"
    conformity = pg.Conformity(inputs={"h": "8x0e+4x1o"})

    def __init__(self, fields, target):
        super().__init__(fields, target)
        self.slices = {str(ir): s for (_, ir), s in zip(fields["h"].o3, fields["h"].o3.slices(), strict=True)}
        scalars, vectors = (self.slices[kind].stop - self.slices[kind].start for kind in ("0e", "1o"))
        self.energy, self.force = nn.Linear(scalars, 1), nn.Linear(vectors // 3, 1, bias=False)
        self.register_buffer("scale", torch.ones(4))  # standard deviation of the labels: equal for x, y and z
        self.register_buffer("shift", torch.zeros(4))  # mean of the labels: 0 for the vector
        self.declare(logits="1x0e+1x1o")

    def forward(self, f):
        vectors = f["h"][:, self.slices["1o"]].unflatten(1, (-1, 3))  # (N, V, 3)
        force = self.force(vectors.transpose(1, 2)).squeeze(2)  # (N, 3)
        return {"logits": self.rescale(torch.cat([self.energy(f["h"][:, self.slices["0e"]]), force], 1))}


def energy_and_force(residues):
    """Return the energy of springs to the residues within 10 Å, and the force of them, ``(L, 4)``."""
    vector = residues.pos[None] - residues.pos[:, None]  # (L, L, 3) from i to j
    distance = np.linalg.norm(vector, axis=2, keepdims=True)
    stretch = (distance - 6) * ((distance > 0) & (distance < 10))
    force = (stretch * vector / np.maximum(distance, 1)).sum(1)
    return np.concatenate([(stretch**2 / 2).sum(1), force], 1).astype(np.float32)


NAMES, HEAD = ("energy", "x", "y", "z"), "outside_energy_and_force"
TARGET = pg.Target("outside_spring", "node", "regression", 4, NAMES, head=HEAD, irreps="1x0e+1x1o")
TASK = replace(default_task(TARGET), derive=energy_and_force, doc="Energy and force of springs between residues.")
FEATURES = [pg.component("radius", radius=10.0), "edge_vector"]
LAYERS = [pg.component("embed", reads=["aatype"], dim=8), pg.component("tfn", irreps="8x0e+4x1o", repeat=2)]
MODEL = pg.ModelSpec("outside_spring", features=FEATURES, layers=LAYERS)
CHECKED = [EnergyAndForce, TASK, MODEL]
