"""Pooling of residues to proteins.

Not PyG's ``global_mean_pool`` or ``AttentionalAggregation``: they reduce by scatter, which is not deterministic on a
GPU; ``Proteins`` reduces contiguous segments (PyG 2.8.1, 2026-11-22).
"""

from __future__ import annotations

from torch import Tensor, nn

from protgraph.nn.multihead import LearnedQueries
from protgraph.ops import Proteins
from protgraph.validation import check_choice

__all__ = ["Pool"]


class Pool(nn.Module):
    """Pooling of the residues of each protein to one row.

    * ``"mean"``, ``"sum"``, ``"max"``: per column;
    * ``"attention"``: ``Σ_i softmax_i(a · h_i) h_i`` with a learned vector a;
    * ``"queries"``: attention pooling with four learned queries, :class:`protgraph.nn.multihead.LearnedQueries`.

    Parameters
    ----------
    width : int
        Number of columns.
    mode : {"mean", "sum", "max", "attention", "queries"}

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
