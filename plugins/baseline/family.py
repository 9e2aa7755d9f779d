"""The floors: ``majority`` sees nothing, ``sequence_mlp`` sees a window of the sequence and no structure."""

from __future__ import annotations

from protgraph import Family, ModelGraph, node

__all__ = ["MAJORITY", "SEQUENCE_MLP"]

MAJORITY = Family(
    {
        "prior": ModelGraph(
            "majority",
            layers=["constant"],
            doc="The same logits for every residue: what the labels' frequencies alone give.",
        )
    }
)


def _window(size: int, dim: int = 64, hidden: int = 128) -> ModelGraph:
    return ModelGraph(
        "sequence_mlp",
        layers=[
            node("embed", reads=["aatype"], dim=16),
            node("window", size=size),
            node("mlp", dim=dim, hidden=hidden, depth=2, act="relu", dropout=0.2),
        ],
        doc=f"Residue types within ±{size} positions of the chain, through two dense layers. No coordinates.",
    )


SEQUENCE_MLP = Family({"window15": _window(7), "window1": _window(0)})
