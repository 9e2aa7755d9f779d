"""Model family: variants of a model spec, which is names of components, options and fields."""

from __future__ import annotations

import protgraph as pg

__all__ = ["FAMILY"]

INPUTS = ["aatype", "dihedral", "template_crowding"]


def network(name: str, *, dim: int, depth: int, long_range: bool) -> pg.ModelSpec:
    """Return the spec of one variant; its name is that of the family for the default, else family.variant."""
    far = ["template_long_range"] if long_range else []
    block = [
        pg.component("template_mean", dim=dim, writes={"h": "update"}),
        pg.component("residual"),  # h ← norm(h + relu(update))
    ]
    return pg.ModelSpec(
        name,
        features=[pg.component("knn", k=16), *far, "dihedral", "template_crowding"],
        layers=[pg.component("embed", reads=INPUTS, dim=dim), *(depth * block)],
        doc=f"Residue type, backbone dihedrals and crowding, averaged {depth} times over neighboring residues.",
    )


FAMILY = pg.Family(
    {
        "small": network("template", dim=64, depth=3, long_range=False),
        "large": network("template.large", dim=128, depth=4, long_range=True),
    },
    doc="Means over the 16 nearest residues; large has edges between residues far apart in the sequence too.",
)
