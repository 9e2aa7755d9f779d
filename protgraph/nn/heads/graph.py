"""Predictions per protein: ``graph_classifier``, ``graph_regressor`` and ``graph_multilabel`` are one network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from protgraph.data.datasets.target import Target
from protgraph.data.graph.fields import FieldSpec
from protgraph.nn.heads.pool import Pool
from protgraph.nn.invariant import invariant_width, invariants, invariants_are_chiral
from protgraph.nn.mlp import mlp
from protgraph.nn.module import Head

__all__ = ["GraphHead"]
ENTRY_POINTS = {
    "protgraph.heads": {
        "graph_classifier": "GraphHead",
        "graph_multilabel": "GraphHead",
        "graph_regressor": "GraphHead",
    },
}


class GraphHead(Head):
    """``logits = MLP(pool_i invariants(h_i))`` for each protein.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
    target : Target
        Its size is the width of the logits.
    pool : {"mean", "sum", "max", "attention", "queries"}
        How residues become a protein; see :class:`protgraph.nn.heads.Pool`.
    hidden : sequence of int
        Widths of hidden layers.
    act : str
        Activation between them.
    dropout : float
        Probability, after each activation.

    Notes
    -----
    Reads: h ``(N, D)``, any irreps; proteins. Writes: logits ``(B, C)``.

    Values are the network's outputs times ``scale`` ``(C,)``, the standard deviation of the labels it is trained on.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "proteins")

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        target: Target,
        *,
        pool: str = "mean",
        hidden: Sequence[int] = (),
        act: str = "relu",
        dropout: float = 0.0,
    ) -> None:
        super().__init__(fields, target)
        if target.kind == "regression":
            self.register_buffer("scale", torch.ones(target.size))
        width = invariant_width(fields["h"])
        self.pool = Pool(width, pool)
        self.mlp = mlp([width, *hidden, target.size], act=act, dropout=dropout)
        chiral = invariants_are_chiral(fields["h"])
        self.declare(logits=FieldSpec("logits", "graph", f"{target.size}x0e", chiral=chiral))

    @property
    def last_linear(self) -> nn.Linear:
        return self.mlp[-1]

    def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {"logits": self.rescale(self.mlp(self.pool(invariants(f["h"], self.fields["h"]), f["proteins"])))}
