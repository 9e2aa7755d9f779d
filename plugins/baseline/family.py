"""Model family of baselines: ``majority`` (constant logits) and ``sequence_mlp`` (a sequence window)."""

from __future__ import annotations

from protgraph import Family, ModelSpec, component

__all__ = ["MAJORITY", "SEQUENCE_MLP"]
ENTRY_POINTS = {"protgraph.models": {"majority": "MAJORITY", "sequence_mlp": "SEQUENCE_MLP"}}

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
