"""Heads for edges of the graph and for pairs of residues, e.g. contacts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from protgraph.data.graph.fields import FieldSpec
from protgraph.nn.irreps import invariant_width, invariants, invariants_are_chiral
from protgraph.nn.mlp import activation
from protgraph.nn.module import Head

if TYPE_CHECKING:
    from protgraph.data.datasets.target import Target

__all__ = ["ContactHead", "EdgeHead"]

ENTRY_POINTS = {"protgraph.heads": {"edge_classifier": "EdgeHead", "contact": "ContactHead"}}


class EdgeHead(Head):
    """Perceptron on the two ends of each edge j → i, with ``x = invariants(h)``.

    ``logits_ij = V act(W₁ x_i + W₂ x_j + W₃ e_ij + b) + c``.

    Parameters
    ----------
    hidden : int
        Width of the hidden layer.
    symmetric : bool
        Average over both orders of i and j; invariant to their exchange if e_ij = e_ji.
    act : str
        Activation function.
    dropout : float
        Dropout probability after the activation.

    Notes
    -----
    Reads: ``h`` ``(N, D)``, any irreps; ``edges``. Optional: ``edge_attr`` ``(E, F)`` scalars.
    Writes: ``logits`` ``(E, C)``.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "edges")
    optional: ClassVar[tuple[str, ...]] = ("edge_attr",)

    def __init__(
        self,
        fields: Mapping[str, FieldSpec],
        target: Target,
        *,
        hidden: int = 64,
        symmetric: bool = False,
        act: str = "relu",
        dropout: float = 0.0,
    ) -> None:
        super().__init__(fields, target)
        width = invariant_width(fields["h"])
        self.symmetric = symmetric
        self.target_linear = nn.Linear(width, hidden)
        self.source_linear = nn.Linear(width, hidden, bias=False)
        with_edges = "edge_attr" in fields
        self.edge_linear = nn.Linear(self.scalar_width("edge_attr"), hidden, bias=False) if with_edges else None
        self.act = activation(act, inplace=True)
        self.out_linear = nn.Sequential(nn.Dropout(dropout), nn.Linear(hidden, target.size))
        chiral = invariants_are_chiral(fields["h"])
        self.declare(logits=FieldSpec("logits", "edge", f"{target.size}x0e", chiral=chiral))

    @property
    def last_linear(self) -> nn.Linear:
        """The last linear map, whose bias is set to the label frequencies."""
        last = self.out_linear[-1]
        assert isinstance(last, nn.Linear)
        return last

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``logits (E, C)``; those of i → j and j → i are equal if ``symmetric``."""
        x, edges = invariants(f["h"], self.fields["h"]), f["edges"]
        first, second = self.target_linear(x), self.source_linear(x)
        edge = None if self.edge_linear is None else self.edge_linear(f["edge_attr"])
        z = self.act(edges.pair_sum(first, second, edge))  # (E, hidden)
        if self.symmetric:
            z = (z + self.act(edges.pair_sum(second, first, edge))) / 2
        return {"logits": self.out_linear(z)}


class ContactHead(Head):
    """Symmetric bilinear form of two residues, with ``x = invariants(h)``.

    ``logits_ij = Σ_r s_r (U x_i)_r (U x_j)_r / sqrt(R) + v · x_i + v · x_j + b``.

    Symmetric in i and j and of rank R: no pair has a hidden vector, and memory is L² C for a protein of L residues.

    Parameters
    ----------
    target : Target
        Its size C is the width of the logits; U is shared by the C forms, each of which has its own s, v and b.
    rank : int
        R.

    Notes
    -----
    Reads: ``h`` ``(N, D)``, any irreps; ``proteins``.
    Writes: ``logits`` ``(Σ_b L_b², C)``: all ordered pairs of each protein, row-major (i, then j), protein after
    protein.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "proteins")

    def __init__(self, fields: Mapping[str, FieldSpec], target: Target, *, rank: int = 32) -> None:
        super().__init__(fields, target)
        width = invariant_width(fields["h"])
        self.project = nn.Linear(width, rank)
        self.sign = nn.Parameter(torch.randn(target.size, rank) * rank**-0.5)  # s_r / sqrt(R)
        self.single = nn.Linear(width, target.size, bias=False)
        self.bias = nn.Parameter(torch.zeros(target.size))
        chiral = invariants_are_chiral(fields["h"])
        self.declare(logits=FieldSpec("logits", "pair", f"{target.size}x0e", chiral=chiral))

    def initialize_logits(self, logits: Tensor) -> None:
        """Set all weights to zero and the bias to the logits ``(C,)`` of the label frequencies."""
        with torch.no_grad():
            self.sign.zero_()
            self.single.weight.zero_()
            self.bias.copy_(logits)

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Compute ``logits (P, C)`` of all ordered pairs, symmetric in i and j."""
        x, proteins = invariants(f["h"], self.fields["h"]), f["proteins"]
        factors, singles = proteins.split(self.project(x)), proteins.split(self.single(x))
        return {"logits": torch.cat([self._pairs(u, s) for u, s in zip(factors, singles, strict=True)])}

    def _pairs(self, u: Tensor, single: Tensor) -> Tensor:
        """Compute the logits of one protein, ``(L, R)`` and ``(L, C)`` to ``(L², C)``."""
        left = u.unsqueeze(1) * self.sign  # (L, C, R)
        pairs = (left.flatten(0, 1) @ u.t()).view(u.size(0), -1, u.size(0)).transpose(1, 2)  # (L, L, C)
        return (pairs + single.unsqueeze(1) + single + self.bias).flatten(0, 1)
