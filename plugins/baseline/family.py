"""Model families of baselines: frequencies of labels, per residue type and by neighbors, and a sequence window."""

from __future__ import annotations

from protgraph import Family, ModelSpec, component

__all__ = ["MAJORITY", "NEIGHBOR_COUNT", "RESIDUE_TYPE", "SEQUENCE_MLP"]
ENTRY_POINTS = {
    "protgraph.models": {
        "majority": "MAJORITY",
        "neighbor_count": "NEIGHBOR_COUNT",
        "residue_type": "RESIDUE_TYPE",
        "sequence_mlp": "SEQUENCE_MLP",
    }
}

MAJORITY = Family(
    {
        "prior": ModelSpec(
            "majority",
            layers=["constant"],
            doc="The same logits for every residue: class frequencies only.",
        )
    },
    doc="Frequencies of the labels.",
)

RESIDUE_TYPE = Family(
    {
        "frequency": ModelSpec(
            "residue_type",
            layers=[component("embed", reads=["aatype"], dim=21)],
            doc="Logits of each residue type: the frequency of the labels among residues of the type.",
        )
    },
    doc="Frequencies of the labels per residue type.",
)

NEIGHBOR_COUNT = Family(
    {
        "radius10": ModelSpec(
            "neighbor_count",
            features=[component("contact_number", radius=10.0)],
            layers=[component("embed", reads=["contact_number"], dim=1)],
            doc="One logistic regression on the number of CA atoms within 10 Å.",
        )
    },
    doc="Number of CA atoms around the residue.",
)


def _window(size: int, dim: int = 64, hidden: int = 128) -> ModelSpec:
    return ModelSpec(
        "sequence_mlp",
        layers=[
            component("embed", reads=["aatype"], dim=16),
            component("window", size=size),
            component("mlp", dim=dim, hidden=hidden, depth=2, act="relu", dropout=0.2),
        ],
        doc=f"Residue types within ±{size} positions of the chain, through two dense layers. No coordinates.",
    )


SEQUENCE_MLP = Family({"window15": _window(7), "window1": _window(0)}, doc="An MLP on a sequence window.")
