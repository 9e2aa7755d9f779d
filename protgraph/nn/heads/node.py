"""Head for residues: a perceptron; for classification, regression and multilabel targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import torch
from torch import Tensor, nn

from protgraph.data.graph.fields import FieldSpec
from protgraph.nn.invariant import invariant_width, invariants, invariants_are_chiral
from protgraph.nn.mlp import mlp
from protgraph.nn.module import Head

if TYPE_CHECKING:
    from protgraph.data.datasets.target import Target

__all__ = ["NodeHead"]
ENTRY_POINTS = {
    "protgraph.heads": {
        "node_classifier": "NodeHead",
        "node_multilabel": "NodeHead",
        "node_regressor": "NodeHead",
    },
}


class NodeHead(Head):
    """Perceptron per residue: ``logits_i = MLP(invariants(h_i))``; one linear map without hidden layers.

    Parameters
    ----------
    fields : mapping of str to FieldSpec
        Specs of the wired input fields, by local name.
    target : Target
        Its size C is the width of the logits.
    hidden : sequence of int
        Widths of the hidden layers.
    act : str
        Activation function.
    dropout : float
        Dropout probability after each activation.

    Notes
    -----
    Reads: ``h`` ``(N, D)``, any irreps: scalars, and norms of the other channels. Writes: ``logits`` ``(N, C)``.

    For regression, the output of the network is multiplied by ``scale`` ``(C,)``, the standard deviation of the
    training labels, and their mean ``shift`` ``(C,)`` is added.
    """

    reads: ClassVar[tuple[str, ...]] = ("h",)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        target: Target,
        *,
        hidden: Sequence[int] = (),
        act: str = "relu",
        dropout: float = 0.0,
    ) -> None:
        super().__init__(fields, target)
        if target.kind == "regression":
            self.register_buffer("scale", torch.ones(target.size))
            self.register_buffer("shift", torch.zeros(target.size))
        self.mlp = mlp([invariant_width(fields["h"]), *hidden, target.size], act=act, dropout=dropout)
        chiral = invariants_are_chiral(fields["h"])
        self.declare(logits=FieldSpec("logits", "node", f"{target.size}x0e", chiral=chiral))

    @property
    def last_linear(self) -> nn.Linear:
        """The last linear map, whose bias is set to the label frequencies."""
        return self.mlp[-1]

    def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Compute ``logits (N, C)`` from the invariants of each node."""
        return {"logits": self.rescale(self.mlp(invariants(f["h"], self.fields["h"])))}
