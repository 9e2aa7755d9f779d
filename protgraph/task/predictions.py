"""Predictions and labels of a whole split, the input of metrics."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from protgraph.task.losses import known_labels

__all__ = ["OTHER_CHAIN", "ResiduePairs", "SplitPredictions"]

#: Separation of residues of different chains: larger than any within a chain.
OTHER_CHAIN = 1 << 40


@dataclass(frozen=True, eq=False)
class ResiduePairs:
    """Residue pairs of the M rows of :class:`SplitPredictions`, one row per unordered pair.

    ``protein``: ``(M,)`` int64, number of the protein, ascending. ``separation``: ``(M,)`` int64, distance in positions
    along the chain; :data:`OTHER_CHAIN` for different chains. ``sizes``: ``(P,)`` int64, residues of each protein.
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
        ``(C,)`` log-odds from which a label counts as predicted, or ``(N, C)`` if they differ between rows. None is 0,
        a probability of 0.5.
    pos : Tensor, optional
        ``(N, 3)`` Å, input positions of the residues: the origins of predicted vectors.
    pairs : ResiduePairs, optional
        Identity of the rows, if they are pairs of residues.
    loss : float, optional
        Mean loss over all known labels, if rows were dropped or the loss is one per protein.
    protein : Tensor, optional
        ``(N,)`` int64, number of the protein of each row.
    scale : Tensor, optional
        ``(C,)``, standard deviations of the training labels of a regression.
    """

    logits: Tensor
    y: Tensor
    chain: Tensor | None = None
    threshold: Tensor | None = None
    pos: Tensor | None = None
    pairs: ResiduePairs | None = None
    loss: float | None = None
    protein: Tensor | None = None
    scale: Tensor | None = None

    @property
    def protein_of_rows(self) -> Tensor:
        """The parameter ``protein``, which the predictions of :mod:`protgraph.evaluation` have."""
        assert self.protein is not None
        return self.protein

    @property
    def is_binary(self) -> bool:
        """True if all known labels are 0 or 1, and both are possible: yes/no labels as floats."""
        known = self.y[known_labels(self.y)]
        return self.y.is_floating_point() and bool(((known == 0) | (known == 1)).all())

    def copy(self) -> SplitPredictions:
        """Return a copy of all tensors."""
        pairs = self.pairs
        if pairs is not None:
            pairs = ResiduePairs(**{name: x.clone() for name, x in vars(pairs).items()})
        tensors: dict[str, Any] = {name: x.clone() for name, x in vars(self).items() if isinstance(x, Tensor)}
        return replace(self, **tensors, pairs=pairs)

    def with_threshold(self, threshold: Tensor | None) -> SplitPredictions:
        """Return the predictions with another threshold, ``(C,)`` or ``(N, C)``."""
        return replace(self, threshold=threshold)

    def take(self, rows: Tensor, copy: Tensor) -> SplitPredictions:
        """Return rows, possibly repeated, as a sample of proteins.

        ``rows``: ``(M,)`` int64, rows of whole proteins, one protein after the other. ``copy``: ``(M,)`` int64, number
        of the copy of the protein that each row is part of, ascending: the protein in the result.
        """
        pairs, chain, threshold = self.pairs, self.chain, self.threshold
        if threshold is not None and threshold.dim() == 2:
            threshold = threshold[rows]
        if pairs is not None:
            first = torch.cat([copy.new_ones(1, dtype=torch.bool), copy.diff() != 0]) if len(copy) else copy.bool()
            pairs = ResiduePairs(copy, pairs.separation[rows], pairs.sizes[pairs.protein[rows[first]]])
        if chain is not None:
            chain = torch.stack([copy, chain[rows]]).unique(dim=1, return_inverse=True)[1]
        return replace(
            self,
            logits=self.logits[rows],
            y=self.y[rows],
            chain=chain,
            threshold=threshold,
            pos=None if self.pos is None else self.pos[rows],
            pairs=pairs,
            loss=None,
            protein=copy,
        )

    def columns(self) -> Iterable[tuple[Tensor, Tensor]]:
        """Yield the K known log-odds ``(K,)`` and int64 labels ``(K,)`` of each of the C labels."""
        for c in range(self.y.size(1)):
            mask = known_labels(self.y[:, c])
            yield self.logits[mask, c], self.y[mask, c].long()

    def chains(self) -> Iterable[Tensor]:
        """Return the rows with a known label, ``(K,)`` int64, of each chain that has one."""
        first = self.y if self.y.dim() == 1 else self.y[:, 0].reshape(len(self.y), -1)[:, 0]
        rows = known_labels(first).nonzero().flatten()
        chain = torch.zeros_like(rows) if self.chain is None else self.chain[rows]
        order = chain.argsort(stable=True)
        count = torch.unique_consecutive(chain[order], return_counts=True)[1]
        return rows[order].split(count.tolist())
