"""Predictions and labels of a whole split, the input of metrics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from protgraph.task.losses import known_labels

__all__ = ["OTHER_CHAIN", "ResiduePairs", "SplitPredictions"]

#: Separation of residues of different chains: larger than any within a chain.
OTHER_CHAIN = 1 << 40


@dataclass(frozen=True, eq=False)
class ResiduePairs:
    """Residue pairs of the M rows of :class:`SplitPredictions`, one row per unordered pair.

    Parameters
    ----------
    protein : Tensor
        ``(M,)`` int64, number of the protein, ascending.
    separation : Tensor
        ``(M,)`` int64, distance in positions along the chain; :data:`OTHER_CHAIN` for different chains.
    sizes : Tensor
        ``(P,)`` int64, residues of each protein.
    """

    protein: Tensor
    separation: Tensor
    sizes: Tensor


@dataclass(frozen=True, eq=False)
class SplitPredictions:
    """Predictions of a model on a split, and the labels, on the CPU.

    Parameters
    ----------
    logits : Tensor
        ``(N, C)`` float, ``(N, C, 3)`` for vectors and coordinates.
    y : Tensor
        ``(N,)`` int64 classes or float32 of the shape of the logits; unknown entries are −1 or NaN.
    chain : Tensor, optional
        ``(N,)`` int64, equal for the residues of one chain of one protein. None if rows are not residues.
    threshold : Tensor, optional
        ``(C,)`` log-odds from which a label counts as predicted. None is 0, a probability of 0.5.
    pos : Tensor, optional
        ``(N, 3)`` Å, input positions of the residues: the origins of predicted vectors.
    pairs : ResiduePairs, optional
        Identity of the rows, if they are pairs of residues.
    loss : float, optional
        Mean loss over all known labels, if rows were dropped or the loss is one per protein.
    """

    logits: Tensor
    y: Tensor
    chain: Tensor | None = None
    threshold: Tensor | None = None
    pos: Tensor | None = None
    pairs: ResiduePairs | None = None
    loss: float | None = None

    def with_threshold(self, threshold: Tensor | None) -> SplitPredictions:
        """Return the same predictions with another threshold."""
        return replace(self, threshold=threshold)

    def columns(self) -> Iterable[tuple[Tensor, Tensor]]:
        """Yield the known log-odds and int64 labels of each of the C labels."""
        for c in range(self.y.size(1)):
            mask = known_labels(self.y[:, c])
            yield self.logits[mask, c], self.y[mask, c].long()

    def chains(self) -> Iterable[Tensor]:
        """Return the rows with a known label of each chain that has one."""
        first = self.y if self.y.dim() == 1 else self.y[:, 0].reshape(len(self.y), -1)[:, 0]
        rows = known_labels(first).nonzero().flatten()
        chain = torch.zeros_like(rows) if self.chain is None else self.chain[rows]
        order = chain.argsort(stable=True)
        count = torch.unique_consecutive(chain[order], return_counts=True)[1]
        return rows[order].split(count.tolist())
