"""Head for the interface of a complex: pooling over the residues with an edge to another chain, then a perceptron."""

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

__all__ = ["InterfaceHead"]
ENTRY_POINTS = {"protgraph.heads": {"graph_interface": "InterfaceHead"}}


class InterfaceHead(Head):
    """Perceptron on the residues of interfaces: ``logits = MLP([mean_I x, log(1 + |I|)])``, ``x = invariants(h)``.

    I are the residues with an edge from a residue of another chain, so that the edge featurizer defines the interface:
    ``contact`` with a cutoff between heavy atoms, ``radius`` with one between CA. Proteins without such a residue, e.g.
    single chains, have a mean of 0.

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
    Reads: ``h`` ``(N, D)``, any irreps; ``chain`` ``(N,)``; ``edges``; ``proteins``. Writes: ``logits`` ``(B, C)``.

    For regression, the output of the network is multiplied by ``scale`` ``(C,)``, the standard deviation of the
    training labels, and their mean ``shift`` ``(C,)`` is added.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "chain", "edges", "proteins")

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
        self.mlp = mlp([invariant_width(fields["h"]) + 1, *hidden, target.size], act=act, dropout=dropout)
        chiral = invariants_are_chiral(fields["h"])
        self.declare(logits=FieldSpec("logits", "graph", f"{target.size}x0e", chiral=chiral))

    @property
    def last_linear(self) -> nn.Linear:
        """The last linear map, whose bias is set to the label frequencies."""
        return self.mlp[-1]

    def forward(self, f: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Compute ``logits (B, C)`` from the edges that connect two chains."""
        x, edges, proteins = invariants(f["h"], self.fields["h"]), f["edges"], f["proteins"]
        chain = f["chain"][:, None]
        crosses = (edges.source(chain) != edges.target(chain)).to(x.dtype)  # (E, 1)
        inside = (edges.sum(crosses) > 0).to(x.dtype)  # (N, 1)
        count = proteins.sum(inside)  # (B, 1)
        pooled = proteins.sum(inside * x) / count.clamp(min=1)  # (B, D)
        return {"logits": self.rescale(self.mlp(torch.cat([pooled, count.log1p()], 1)))}
