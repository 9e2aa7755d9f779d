"""Head for whole proteins: pooling, then a perceptron; for classification, regression and multilabel targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn

from protgraph.data.graph.fields import FieldSpec
from protgraph.nn.heads.pool import Pool
from protgraph.nn.invariant import invariant_width, invariants, invariants_are_chiral
from protgraph.nn.mlp import mlp
from protgraph.nn.module import Head

if TYPE_CHECKING:
    from protgraph.data.datasets.target import Target

__all__ = ["GraphHead"]
ENTRY_POINTS = {
    "protgraph.heads": {
        "graph_classifier": "GraphHead",
        "graph_multilabel": "GraphHead",
        "graph_regressor": "GraphHead",
    },
}


class GraphHead(Head):
    """Perceptron on pooled residues: ``logits = MLP(pool_i invariants(h_i))`` per protein.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
        Specs of the wired input fields, by local name.
    target : Target
        Its size C is the width of the logits.
    pool : {"mean", "sum", "max", "attention", "queries"}
        Pooling of residues, see :class:`protgraph.nn.heads.Pool`.
    hidden : sequence of int
        Widths of the hidden layers.
    act : str
        Activation function.
    dropout : float
        Dropout probability after each activation.

    Notes
    -----
    Reads: ``h`` ``(N, D)``, any irreps; ``proteins``. Writes: ``logits`` ``(B, C)``.

    For regression, the output of the network is multiplied by ``scale`` ``(C,)``, the standard deviation of the
    training labels, and their mean ``shift`` ``(C,)`` is added.
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
            self.register_buffer("shift", torch.zeros(target.size))
        width = invariant_width(fields["h"])
        self.pool = Pool(width, pool)
        self.mlp = mlp([width, *hidden, target.size], act=act, dropout=dropout)
        chiral = invariants_are_chiral(fields["h"])
        self.declare(logits=FieldSpec("logits", "graph", f"{target.size}x0e", chiral=chiral))

    @property
    def last_linear(self) -> nn.Linear:
        """The last linear map, whose bias is set to the label frequencies."""
        return self.mlp[-1]

    def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Compute ``logits (B, C)`` from the pooled invariants of each protein."""
        return {"logits": self.rescale(self.mlp(self.pool(invariants(f["h"], self.fields["h"]), f["proteins"])))}
