"""Heads that are a perceptron: its rows are residues, pooled residues, or pooled residues of an interface."""

# Not PyG's pooling: its scatter is not deterministic on a GPU; Proteins reduces segments (PyG 2.8.1, 2026-11-22).

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from protgraph.data.graph.fields import FieldSpec, Level
from protgraph.nn.irreps import invariant_width, invariants, invariants_are_chiral
from protgraph.nn.mlp import mlp
from protgraph.nn.module import Head
from protgraph.nn.multihead import LearnedQueries
from protgraph.ops import Proteins
from protgraph.validation import check_choice

if TYPE_CHECKING:
    from protgraph.data.datasets.target import Target

__all__ = ["GraphHead", "InterfaceHead", "NodeHead", "Pool"]
ENTRY_POINTS = {
    "protgraph.heads": {
        "graph_classifier": "GraphHead",
        "graph_interface": "InterfaceHead",
        "graph_multilabel": "GraphHead",
        "graph_regressor": "GraphHead",
        "node_classifier": "NodeHead",
        "node_multilabel": "NodeHead",
        "node_regressor": "NodeHead",
    },
}


class Pool(nn.Module):
    """Pooling of the residues of each protein to one row.

    * ``"mean"``, ``"sum"``, ``"max"``: per column;
    * ``"attention"``: ``Σ_i softmax_i(a · h_i) h_i`` with a learned vector a;
    * ``"queries"``: attention pooling with four learned queries, :class:`protgraph.nn.multihead.LearnedQueries`.

    ``width``: number of columns. ``mode``: "mean", "sum", "max", "attention" or "queries".

    References
    ----------
    Attention: Li et al. 2016, arXiv:1511.05493, eq. 7, with softmax for its sigmoid.
    """

    def __init__(self, width: int, mode: str = "mean") -> None:
        super().__init__()
        self.mode = check_choice("pool", mode, ("mean", "sum", "max", "attention", "queries"))
        # No bias: the softmax cancels it.
        self.score = nn.Linear(width, 1, bias=False) if mode == "attention" else None
        self.queries = LearnedQueries(width) if mode == "queries" else None

    def forward(self, h: Tensor, proteins: Proteins) -> Tensor:
        """Pool ``(N, C)`` to ``(B, C)``."""
        if self.score is not None:
            return proteins.sum(proteins.softmax(self.score(h)) * h)
        if self.queries is not None:
            return self.queries(h, proteins)
        return {"mean": proteins.mean, "sum": proteins.sum, "max": proteins.max}[self.mode](h)


class PerceptronHead(Head):
    """Perceptron on rows of invariants: one per residue or protein, by ``level``.

    ``target``: its size C is the width of the logits. ``hidden``: widths of the hidden layers. ``act``: activation
    function. ``dropout``: dropout probability after each activation.

    For regression, the output of the network is multiplied by ``scale`` ``(C,)``, the standard deviation of the
    training labels, and their mean ``shift`` ``(C,)`` is added.
    """

    level: ClassVar[Level] = "graph"
    more_columns: ClassVar[int] = 0
    """Columns of the rows beside the invariants of h."""

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
        self._build(hidden, act, dropout)

    def _build(self, hidden: Sequence[int], act: str, dropout: float) -> None:
        size, h = self.target.size, self.fields["h"]
        if self.target.kind == "regression":
            self.register_buffer("scale", torch.ones(size))
            self.register_buffer("shift", torch.zeros(size))
        self.mlp = mlp([invariant_width(h) + self.more_columns, *hidden, size], act=act, dropout=dropout)
        self.declare(logits=FieldSpec("logits", self.level, f"{size}x0e", chiral=invariants_are_chiral(h)))

    @property
    def last_linear(self) -> nn.Linear:
        """The last linear map, whose bias is set to the label frequencies."""
        last = self.mlp[-1]
        assert isinstance(last, nn.Linear)
        return last

    @abstractmethod
    def rows(self, x: Tensor, f: Mapping[str, Any]) -> Tensor:
        """Return the rows that enter the perceptron, ``(N, D)`` or ``(B, D)``, from invariants ``x (N, D)``."""

    def forward(self, f: Mapping[str, Any]) -> dict[str, Tensor]:
        """Return ``logits`` ``(N, C)`` or ``(B, C)``."""
        return {"logits": self.rescale(self.mlp(self.rows(invariants(f["h"], self.fields["h"]), f)))}


class NodeHead(PerceptronHead):
    """Perceptron per residue: ``logits_i = MLP(invariants(h_i))``; one linear map without hidden layers.

    Notes
    -----
    Reads: ``h`` ``(N, D)``, any irreps: scalars, and norms of the other channels. Writes: ``logits`` ``(N, C)``.
    """

    reads: ClassVar[tuple[str, ...]] = ("h",)
    level = "node"

    def rows(self, x: Tensor, f: Mapping[str, Any]) -> Tensor:
        """Return a row per residue, ``(N, D)``."""
        return x


class GraphHead(PerceptronHead):
    """Perceptron on pooled residues: ``logits = MLP(pool_i invariants(h_i))`` per protein.

    Parameters
    ----------
    pool : {"mean", "sum", "max", "attention", "queries"}
        Pooling of residues, see :class:`protgraph.nn.heads.Pool`.
    hidden, act, dropout
        As in :class:`NodeHead`.

    Notes
    -----
    Reads: ``h`` ``(N, D)``, any irreps; ``proteins``. Writes: ``logits`` ``(B, C)``.
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
        Head.__init__(self, fields, target)
        self.pool = Pool(invariant_width(fields["h"]), pool)  # before the perceptron: seeds give the same weights
        self._build(hidden, act, dropout)

    def rows(self, x: Tensor, f: Mapping[str, Any]) -> Tensor:
        """Return a row per protein, ``(B, D)``: its pooled residues."""
        return self.pool(x, f["proteins"])


class InterfaceHead(PerceptronHead):
    """Perceptron on the residues of interfaces: ``logits = MLP([mean_I x, log(1 + |I|)])``, ``x = invariants(h)``.

    I are the residues with an edge from a residue of another chain, so that the edge featurizer defines the interface:
    ``contact`` with a cutoff between heavy atoms, ``radius`` with one between CA. Proteins without such a residue, e.g.
    single chains, have a mean of 0.

    Notes
    -----
    Reads: ``h`` ``(N, D)``, any irreps; ``chain`` ``(N,)``; ``edges``; ``proteins``. Writes: ``logits`` ``(B, C)``.
    """

    reads: ClassVar[tuple[str, ...]] = ("h", "chain", "edges", "proteins")
    more_columns = 1

    def rows(self, x: Tensor, f: Mapping[str, Any]) -> Tensor:
        """Return a row per protein, ``(B, D + 1)``: the mean and the number of residues of its interfaces."""
        edges, proteins = f["edges"], f["proteins"]
        chain = f["chain"][:, None]
        crosses = (edges.source(chain) != edges.target(chain)).to(x.dtype)  # (E, 1)
        inside = (edges.sum(crosses) > 0).to(x.dtype)  # (N, 1)
        count = proteins.sum(inside)  # (B, 1)
        pooled = proteins.sum(inside * x) / count.clamp(min=1)  # (B, D)
        return torch.cat([pooled, count.log1p()], 1)
