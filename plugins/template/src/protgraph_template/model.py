"""Model spec: names of components, options and fields."""

from __future__ import annotations

import protgraph as pg

__all__ = ["MODEL"]

INPUTS = ["aatype", "dihedral", "template_crowding"]
BLOCK = [
    pg.component("template_mean", dim=64, writes={"h": "update"}),
    pg.component("residual"),  # h ← norm(h + relu(update))
]

MODEL = pg.ModelSpec(
    "template",
    features=[pg.component("knn", k=16), "dihedral", "template_crowding"],
    layers=[pg.component("embed", reads=INPUTS, dim=64), *(3 * BLOCK)],
    doc="Residue type, backbone dihedrals and crowding, averaged three times over the 16 nearest residues.",
)
